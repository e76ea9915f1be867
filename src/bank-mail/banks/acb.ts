import type { RealTime } from '#shared/time.ts'
import {
  countOf,
  DEBIT,
  fingerprint,
  readDong,
  vietnamTime,
  type BankReader,
  type Credit,
  type Notice,
} from './reader.ts'

/**
 * "Thông báo thay đổi số dư tài khoản" of ACB: a Vietnamese half, and usually the same in English. Amounts are `10,000.00`.
 * ACB ends the transfer's text with `GD`, its own number of the movement, and the time.
 */
export const acb: BankReader = {
  code: 'ACB',
  domains: ['acb.com.vn'],
  bins: ['970416'],
  namesAccount: true,
  senders: ['mailalert@acb.com.vn'],
  subjects: ['Thông báo thay đổi số dư tài khoản'],
  greeting: /^(?:Kính gửi Quý khách(?: hàng)?[.,:]? )?$/iu,
  opening: /ACB trân trọng thông báo tài khoản /u,
  creditWords: /Ghi có|Latest transaction ?: ?Credit/u,
  readNotice(text) {
    const [vietnamese = '', ...english] = text.split(/-{3,}|(?=Dear Customers?,)/)
    const notice = readHalf(vietnamese, VIETNAMESE)
    const englishText = english.join(' ')
    if (!notice || !englishText.includes(ENGLISH.movement)) return notice
    const same = readHalf(englishText, ENGLISH)
    return same && isSame(notice, same) ? notice : null
  },
}

interface Half {
  readonly movement: string
  /** Where the half begins. */
  readonly start: RegExp
  /** Matches the half from its beginning. */
  readonly pattern: RegExp
  readonly labels: readonly string[]
}

const VIETNAMESE: Half = {
  movement: 'Giao dịch mới nhất',
  start: /tài khoản \d{4,19} của Quý khách/u,
  pattern:
    /^tài khoản (\d{4,19}) .* Giao dịch mới nhất ?: ?Ghi (?:có ?\+|nợ ?(-)) ?([\d.,]+) ?VND\. Nội dung giao dịch ?: ?(.+)$/u,
  labels: ['Giao dịch mới nhất', 'Nội dung giao dịch', 'Số dư mới'],
}

const ENGLISH: Half = {
  movement: 'Latest transaction',
  start: /your \d{4,19} account balance/u,
  pattern: /^your (\d{4,19}) .* Latest transaction ?: ?(?:Credit ?\+|Debit ?(-)) ?([\d.,]+) ?VND\. Content ?: ?(.+)$/u,
  labels: ['Latest transaction', 'Updated account balance'],
}

/** Greedy, so that the last match is the bank's: a payer's text stands before it. */
const BANKS_OWN_TAIL = /^(.*) GD ([0-9A-Z]+[ -]\d{6}[ -]\d{2}:\d{2}:\d{2})/u

function readHalf(text: string, half: Half): Notice | null {
  const start = text.search(half.start)
  const match = start === -1 ? null : half.pattern.exec(text.slice(start))
  if (!match || half.labels.some((label) => countOf(text, label) !== 1)) return null
  const [said, account = '', minus, amountText = '', content = ''] = match
  if (minus !== undefined) return DEBIT
  const amount = readDong(amountText, ',', 'zeros')
  if (amount === null) return null
  const [, payersText = content, reference] = BANKS_OWN_TAIL.exec(content) ?? []
  const credit: Credit = {
    amount,
    account,
    reference: reference ?? fingerprint([said.slice(0, -content.length)], content),
    bookedAt: bookedAt(reference ?? ''),
    content: payersText,
  }
  return { kind: 'credit', credit }
}

/** `6256IBT1AJQYKLVM 130926-13:37:09` was booked on 13 September 2026; older references do not contain the day. */
function bookedAt(reference: string): RealTime | null {
  const match = / (\d{2})(\d{2})(\d{2})-(\d{2}:\d{2}:\d{2})$/.exec(reference)
  if (!match) return null
  const [, day = '', month = '', year = '', time = ''] = match
  return vietnamTime(`20${year}`, month, day, time)
}

function isSame(one: Notice, other: Notice): boolean {
  if (one.kind !== 'credit' || other.kind !== 'credit') return one.kind === other.kind
  const [first, second] = [one.credit, other.credit]
  return first.amount === second.amount && first.account === second.account && isSameText(first.content, second.content)
}

/** Without the bank's own tail, the text at the end of the mail includes the mail's last words. */
function isSameText(one: string, other: string): boolean {
  const [first, second] = [one, other].map((text) => text.replace(/(?<![\s.])[\s.]+$/u, '')) as [string, string]
  return first.startsWith(second) || second.startsWith(first)
}
