import { countOf, DEBIT, readDong, vietnamTime, type BankReader } from './reader.ts'

/**
 * Transaction notices of MB: rows of a label and a value; amounts are `5,000.00`. Less certain than the other three: the template of
 * incoming money is from one author's description without a sample, and only the beginning of its subject is known. Outgoing money
 * has `Tài khoản trích nợ`.
 */
export const mb: BankReader = {
  code: 'MB',
  domains: ['mbbank.com.vn'],
  bins: ['970422'],
  namesAccount: true,
  senders: ['mbebanking@mbbank.com.vn'],
  subjects: ['Thông báo'],
  greeting:
    /^(?:Kính gửi Quý khách(?: hàng)?[.,:]? )?(?:Cảm ơn Quý khách đã sử dụng dịch vụ MB eBanking[.,]? )?(?:MB xin thông báo giao dịch của Quý khách đã được thực hiện như sau ?: )?$/iu,
  opening: /Ngày, giờ giao dịch/u,
  creditWords: /Tài khoản ghi có/u,
  readNotice(text) {
    // The payer's text follows this label.
    const [head = ''] = text.split('Nội dung chuyển tiền')
    if (countOf(head, 'Tài khoản trích nợ') === 1 && !head.includes('Tài khoản ghi có')) return DEBIT
    // Checked first: the patterns below are slow on a text that has a label thousands of times.
    if (LABELS.some((label) => countOf(text, label) !== 1) || text.includes('trích nợ')) return null
    const account = ACCOUNT.exec(text)?.[1]
    const reference = REFERENCE.exec(text)?.[1]
    const amount = readDong(AMOUNT.exec(text)?.[1] ?? '', ',', 'zeros')
    const content = CONTENT.exec(text)?.[1]
    if (!account || !reference || amount === null || !content) return null
    const [, day = '', month = '', year = '', time = ''] = BOOKED.exec(text) ?? []
    const bookedAt = vietnamTime(year, month, day, time)
    return { kind: 'credit', credit: { amount, account, reference, bookedAt, content } }
  },
}

const ACCOUNT = /Tài khoản ghi có ?:? .{1,120}?- ?(\d{4,19}) ?\(VND\)/u
const REFERENCE = /Số tham chiếu ?:? ([0-9A-Za-z]{4,40})(?= )/u
const AMOUNT = /Số tiền giao dịch ?\(VND\) ?:? ?([\d.,]+)(?= \D)/u
const CONTENT = /Nội dung chuyển tiền ?:? (.+?) Tình trạng ?:? Giao dịch thành công/u
const BOOKED = /Ngày, giờ giao dịch ?:? (\d{2})-(\d{2})-(\d{4}) (\d{2}:\d{2}:\d{2})/u

const LABELS = ['Tài khoản ghi có', 'Số tham chiếu', 'Số tiền giao dịch', 'Nội dung chuyển tiền', 'Tình trạng']
