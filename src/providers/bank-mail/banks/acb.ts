import { countOf, fingerprint, readDong, vietnamTime } from './reader.ts'
import type { BankReader, Credit } from './reader.ts'

/**
 * "Thông báo thay đổi số dư tài khoản" of ACB: a Vietnamese half, and usually the same in English. Amounts are `10,000.00`.
 * ACB ends the transfer's text with `GD`, its own number of the movement, and the time.
 */
export const acb: BankReader = {
  code: 'ACB',
  domains: ['acb.com.vn'],
  bins: ['970416'],
  readCredit(text) {
    const [vietnamese = '', ...english] = text.split(/-{3,}|(?=Dear Customers?,)/)
    const credit = readHalf(vietnamese, VIETNAMESE)
    const englishText = english.join(' ')
    if (!credit || !englishText.includes(ENGLISH.movement)) return credit
    const same = readHalf(englishText, ENGLISH)
    return same && isSame(credit, same) ? credit : null
  },
}

interface Half {
  readonly movement: string
  readonly pattern: RegExp
  readonly labels: readonly string[]
}

const VIETNAMESE: Half = {
  movement: 'Giao dịch mới nhất',
  pattern:
    /tài khoản (\d{4,19}) của Quý khách.* Giao dịch mới nhất ?: ?Ghi có ?\+ ?([\d.,]+) ?VND\. Nội dung giao dịch ?: ?(.+)$/u,
  labels: ['Giao dịch mới nhất', 'Nội dung giao dịch', 'Số dư mới'],
}

const ENGLISH: Half = {
  movement: 'Latest transaction',
  pattern: /your (\d{4,19}) account balance.* Latest transaction ?: ?Credit ?\+ ?([\d.,]+) ?VND\. Content ?: ?(.+)$/u,
  labels: ['Latest transaction', 'Updated account balance'],
}

/** The last one is the bank's: what a payer writes stands before it. */
const BANKS_OWN_TAIL = /^(.*) GD ([0-9A-Z]+[ -]\d{6}[ -]\d{2}:\d{2}:\d{2})/u

function readHalf(text: string, half: Half): Credit | null {
  const match = half.pattern.exec(text)
  if (!match || half.labels.some((label) => countOf(text, label) !== 1)) return null
  const [, account = '', amountText = '', content = ''] = match
  const amount = readDong(amountText, ',', 'zeros')
  if (amount === null) return null
  const [, payersText = content, reference] = BANKS_OWN_TAIL.exec(content) ?? []
  const said = text.slice(match.index, -content.length)
  return {
    amount,
    account,
    reference: reference ?? fingerprint([said], content),
    bookedAt: bookedAt(reference ?? ''),
    content: payersText,
  }
}

/** `6256IBT1AJQYKLVM 130926-13:37:09` was booked on 13 September 2026; older references do not tell their day. */
function bookedAt(reference: string): Date | null {
  const match = / (\d{2})(\d{2})(\d{2})-(\d{2}:\d{2}:\d{2})$/.exec(reference)
  if (!match) return null
  const [, day = '', month = '', year = '', time = ''] = match
  return vietnamTime(`20${year}`, month, day, time)
}

function isSame(one: Credit, other: Credit): boolean {
  return one.amount === other.amount && one.account === other.account && isSameText(one.content, other.content)
}

/** Without the bank's own tail, the text that stands last in the mail runs into what the mail ends with. */
function isSameText(one: string, other: string): boolean {
  const [first, second] = [one, other].map((text) => text.replace(/(?<![\s.])[\s.]+$/u, '')) as [string, string]
  return first.startsWith(second) || second.startsWith(first)
}
