import { countOf, DEBIT, PERSON, readDong, vietnamTime, type BankReader } from './reader.ts'

/** "[CAKE] Thông báo giao dịch thành công" of CAKE: rows of a label and a value; `+149.000 đ` came in, a minus went out. */
export const cake: BankReader = {
  code: 'CAKE',
  domains: ['cake.vn'],
  bins: ['546034'],
  namesAccount: true,
  senders: ['no-reply@cake.vn'],
  subjects: ['[CAKE] Thông báo giao dịch thành công'],
  greeting: new RegExp(
    `^(?:(?:Chào ${PERSON}[,!]? )?Cake xin thông báo tài khoản của bạn vừa mới phát sinh giao dịch như sau ?: )?(?:Thông tin tài khoản )?$`,
    'iu',
  ),
  opening: /Tài khoản (?:nhận|chuyển) /u,
  creditWords: /Số tiền ?:? ?\+/u,
  readNotice(text) {
    if (countOf(text, 'Số tiền') === 1 && DEBITED.test(text)) return DEBIT
    if (LABELS.some((label) => countOf(text, label) !== 1)) return null
    const account = ACCOUNT.exec(text)?.[1]
    const reference = REFERENCE.exec(text)?.[1]
    const amount = readDong(AMOUNT.exec(text)?.[1] ?? '', '.')
    const content = CONTENT.exec(text)?.[1]
    if (!account || !reference || amount === null || !content) return null
    const [, day = '', month = '', year = '', time = ''] = BOOKED.exec(text) ?? []
    const bookedAt = vietnamTime(year, month, day, time)
    return { kind: 'credit', credit: { amount, account, reference, bookedAt, content } }
  },
}

const DEBITED = /Số tiền ?:? ?- ?\d/u
const ACCOUNT = /Tài khoản nhận ?:? (\d{4,19})(?=[ -])/u
const REFERENCE = /Mã giao dịch ?:? ([0-9A-Za-z]{4,40})(?= )/u
const AMOUNT = /Số tiền ?:? ?\+ ?([\d.,]+) ?(?:đ|₫|VND|VNĐ)(?= )/u
const CONTENT = /Nội dung giao dịch ?:? (.+)$/u
const BOOKED = /Ngày giờ giao dịch ?:? (\d{2})\/(\d{2})\/(\d{4}),? (\d{2}:\d{2}:\d{2})/u

const LABELS = ['Tài khoản nhận', 'Mã giao dịch', 'Số tiền', 'Nội dung giao dịch']
