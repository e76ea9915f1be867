import { sha256Hex } from '#shared/crypto.ts'
import { HOUR_MS, addMs, asRealTime, parseTimestamp, type RealTime } from '#shared/time.ts'

/** Money that a bank's mail says has come in. */
export interface Credit {
  /** Whole dong. */
  readonly amount: number
  /** The account that it came in on, where the mail says. */
  readonly account: string | null
  /** What the bank calls this movement and no other; a `fingerprint` of it where the mail does not say. */
  readonly reference: string
  readonly bookedAt: RealTime | null
  /** The transfer's text with all that the banks put around it. */
  readonly content: string
}

/** What a bank writes of a movement: money that came in, or money that went out, of which nothing is read. */
export type Notice = { readonly kind: 'credit'; readonly credit: Credit } | { readonly kind: 'debit' }

export const DEBIT: Notice = { kind: 'debit' }

/** How one bank's mails are read. */
export interface BankReader {
  /** The bank's short code in the VietQR list. */
  readonly code: string
  /** Domains that the bank sends from and signs with. */
  readonly domains: readonly string[]
  /** BINs of the accounts that these mails are about. */
  readonly bins: readonly string[]
  /** Whether its mails name the account that they are about. */
  readonly namesAccount: boolean
  /** The addresses, in lower case, that notices come from. Other mailboxes under the domains may quote what anybody wrote. */
  readonly senders: readonly string[]
  /** What the subjects of notices begin with. */
  readonly subjects: readonly string[]
  /** All that may stand before `opening`. */
  readonly greeting: RegExp
  /** The first words of the notice itself. */
  readonly opening: RegExp
  /** Words that a mail about money that came in has, and one about money that went out has not. */
  readonly creditWords: RegExp
  /**
   * What the text says, which is as `normalizeText` makes it and begins with `opening`. Null for a template that is not exactly the
   * known one, a label that stands more often than the template has it (a payer's text may imitate the template), an amount that is
   * not written as this bank writes amounts.
   */
  readNotice(text: string): Notice | null
}

/** The name of a person, for a greeting: no digits, no colon, so that no template fits into it. */
export const PERSON = String.raw`[\p{L}\p{M} .'-]{1,100}?`

/** What a mail's text says, and whether it begins as a notice does. */
export interface TextReading {
  readonly notice: Notice | null
  readonly isFromItsBeginning: boolean
}

/** Reads the notice in a text, wherever it begins. `text` is as `normalizeText` makes it. */
export function readText(reader: BankReader, text: string): TextReading {
  const start = text.search(reader.opening)
  if (start === -1) return { notice: null, isFromItsBeginning: false }
  return {
    notice: reader.readNotice(text.slice(start)),
    isFromItsBeginning: start <= LONGEST_GREETING && reader.greeting.test(text.slice(0, start)),
  }
}

const LONGEST_GREETING = 300

/**
 * Whether the subject is one of this bank's notices. Mail servers that forward put marks in brackets before it; accents and case
 * are lost on the way now and then.
 */
export function isNoticeSubject(reader: BankReader, subject: string): boolean {
  const plain = withoutAccents(normalizeText(subject.slice(0, LONGEST_SUBJECT)))
  return reader.subjects.map(withoutAccents).some((known) => {
    const at = plain.indexOf(known)
    return at !== -1 && /^(?:\[[^[\]]{0,60}\] ?)*$/.test(plain.slice(0, at))
  })
}

const LONGEST_SUBJECT = 1000

function withoutAccents(text: string): string {
  return text.toLowerCase().normalize('NFD').replace(/\p{M}/gu, '').replaceAll('đ', 'd')
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
export function vietnamTime(year: string, month: string, day: string, time: string): RealTime | null {
  const instant = parseTimestamp(`${year}-${month}-${day} ${time}`)
  return instant && asRealTime(addMs(instant, -7 * HOUR_MS))
}

/**
 * Stands for a movement that has no number: what the mail says of it before the payer's text (its time, the balance after it),
 * and the beginning of that text, where the sending bank puts a number of its own. What follows may be a forwarder's footer.
 */
export function fingerprint(said: readonly string[], content: string): string {
  return sha256Hex([...said, content.slice(0, 60)].join('\n'))
}
