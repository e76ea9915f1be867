import { sha256Hex } from '#shared/crypto.ts'
import { addMs, HOUR_MS, parseTimestamp } from '#shared/time.ts'

/** Money that a bank's mail says has come in. */
export interface Credit {
  /** Whole dong. */
  readonly amount: number
  /** The account that it came in on, where the mail says. */
  readonly account: string | null
  /** What the bank calls this movement and no other; a `fingerprint` of it where the mail does not say. */
  readonly reference: string
  readonly bookedAt: Date | null
  /** The transfer's text with all that the banks put around it. */
  readonly content: string
}

/** How one bank's mails are read. */
export interface BankReader {
  /** The bank's short code in the VietQR list. */
  readonly code: string
  /** Domains that the bank sends from and signs with. */
  readonly domains: readonly string[]
  /** BINs of the accounts that these mails are about. */
  readonly bins: readonly string[]
  /**
   * The credit that the text of a mail tells of, the text being as `normalizeText` makes it. Null for everything else: money that
   * went out, a template that is not exactly the known one, a label that stands more often than the template has it (a payer's
   * text may imitate the template), an amount that is not written as this bank writes amounts.
   */
  readCredit(text: string): Credit | null
}

/** Many times a notice: what takes time by the square of the length, as patterns of readers do, takes none that matters. */
const LONGEST_TEXT = 10_000

/** One line, composed letters, plain blanks; without asterisks (mail programs put them for bold) and invisible characters. */
export function normalizeText(text: string): string {
  return text
    .replace(/[\p{Cf}*]/gu, '')
    .replace(/[\s\p{Z}\p{Cc}]+/gu, ' ')
    .trim()
    .slice(0, LONGEST_TEXT)
    .normalize('NFC')
}

/**
 * Whole dong written in groups of three, with `,` or `.` between them, and with two zeros behind the other sign where the bank
 * writes decimals. Each bank has its own way: `10.000` is ten thousand at one and would be ten at another. Null for anything
 * else, and for nothing, and for what a number cannot hold exactly.
 */
export function readDong(text: string, group: ',' | '.', decimals: 'none' | 'zeros' = 'none'): number | null {
  const [separator, point] = group === ',' ? [',', '\\.'] : ['\\.', ',']
  const tail = decimals === 'zeros' ? `(?:${point}00)?` : ''
  if (!new RegExp(`^[1-9]\\d{0,2}(?:${separator}\\d{3})*${tail}$`).test(text)) return null
  const amount = Number(text.replace(new RegExp(`${point}00$`), '').replaceAll(group, ''))
  return Number.isSafeInteger(amount) ? amount : null
}

/** How often the label stands in the text. */
export function countOf(text: string, label: string): number {
  return text.split(label).length - 1
}

/** An instant from its parts in Vietnam's time (UTC+7, no summer time); null where there is no such time. */
export function vietnamTime(year: string, month: string, day: string, time: string): Date | null {
  const instant = parseTimestamp(`${year}-${month}-${day} ${time}`)
  return instant && addMs(instant, -7 * HOUR_MS)
}

/**
 * Stands for a movement that has no number: what the mail says of it before the payer's text (its time, the balance after it),
 * and the beginning of that text, where the sending bank puts a number of its own. What follows may be a forwarder's footer.
 */
export function fingerprint(said: readonly string[], content: string): string {
  return sha256Hex([...said, content.slice(0, 60)].join('\n'))
}
