import { sha256Hex } from '#shared/crypto.ts'
import { HOUR_MS, addMs, asRealTime, parseTimestamp, type RealTime } from '#shared/time.ts'

/** Money that arrived according to a bank's mail. */
export interface Credit {
  /** Whole dong. */
  readonly amount: number
  /** The credited account, if the mail names it. */
  readonly account: string | null
  /** The bank's unique id of this movement; a `fingerprint` if the mail has none. */
  readonly reference: string
  readonly bookedAt: RealTime | null
  /** The transfer's text, including what banks put around it. */
  readonly content: string
}

/** A movement in a bank's mail: money that came in, or money that went out, which has no details. */
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
  /** The sender addresses of notices, in lower case. Other mailboxes under the domains may quote what anybody wrote. */
  readonly senders: readonly string[]
  /** What the subjects of notices begin with. */
  readonly subjects: readonly string[]
  /** Matches everything that may stand before `opening`. */
  readonly greeting: RegExp
  /** The first words of the notice itself. */
  readonly opening: RegExp
  /** Words that appear only in mails about incoming money. */
  readonly creditWords: RegExp
  /**
   * Reads a text that `normalizeText` made and that begins with `opening`. Null for a template that is not exactly the known one, or an
   * amount in another format than the bank's. Also null for a label that occurs more often than in the template, because a payer's text may
   * imitate it.
   */
  readNotice(text: string): Notice | null
}

/** The name of a person in a greeting: no digits and no colon, so that it cannot contain a template. */
export const PERSON = String.raw`[\p{L}\p{M} .'-]{1,100}?`

/** The notice in a mail's text, and whether the text begins as notices do. */
export interface TextReading {
  readonly notice: Notice | null
  readonly isFromItsBeginning: boolean
}

/** Reads the notice in a text that `normalizeText` made, wherever it begins. */
export function readText(reader: BankReader, text: string): TextReading {
  const start = text.search(reader.opening)
  if (start === -1) return { notice: null, isFromItsBeginning: false }
  return {
    notice: reader.readNotice(text.slice(start)),
    isFromItsBeginning: start <= MAX_GREETING_LENGTH && reader.greeting.test(text.slice(0, start)),
  }
}

const MAX_GREETING_LENGTH = 300

/**
 * Whether the subject is that of this bank's notices. Forwarding servers put marks in brackets before it, and may lose accents and
 * case.
 */
export function isNoticeSubject(reader: BankReader, subject: string): boolean {
  const plain = withoutAccents(normalizeText(subject.slice(0, MAX_SUBJECT_LENGTH)))
  return reader.subjects.map(withoutAccents).some((known) => {
    const at = plain.indexOf(known)
    return at !== -1 && /^(?:\[[^[\]]{0,60}\] ?)*$/.test(plain.slice(0, at))
  })
}

const MAX_SUBJECT_LENGTH = 1000

function withoutAccents(text: string): string {
  return text.toLowerCase().normalize('NFD').replace(/\p{M}/gu, '').replaceAll('đ', 'd')
}

/** Many times a notice, and short enough for patterns that take quadratic time. */
const MAX_TEXT_LENGTH = 10_000

/** One line of composed letters and plain blanks, without asterisks (which mail programs use for bold) and invisible characters. */
export function normalizeText(text: string): string {
  return text
    .replace(/[\p{Cf}*]/gu, '')
    .replace(/[\s\p{Z}\p{Cc}]+/gu, ' ')
    .trim()
    .slice(0, MAX_TEXT_LENGTH)
    .normalize('NFC')
}

/**
 * Parses whole dong in groups of three, separated by `,` or `.`. If the bank writes decimals, they are two zeros after the other sign.
 * Formats differ by bank: `10.000` is ten thousand at one and would be ten at another. Null for any other format, and for numbers beyond
 * the safe integers.
 */
export function readDong(text: string, group: ',' | '.', decimals: 'none' | 'zeros' = 'none'): number | null {
  const [separator, point] = group === ',' ? [',', '\\.'] : ['\\.', ',']
  const tail = decimals === 'zeros' ? `(?:${point}00)?` : ''
  if (!new RegExp(`^[1-9]\\d{0,2}(?:${separator}\\d{3})*${tail}$`).test(text)) return null
  const amount = Number(text.replace(new RegExp(`${point}00$`), '').replaceAll(group, ''))
  return Number.isSafeInteger(amount) ? amount : null
}

/** How often the label occurs in the text. */
export function countOf(text: string, label: string): number {
  return text.split(label).length - 1
}

/** An instant from its parts in Vietnam's time (UTC+7, no summer time); null if there is no such time. */
export function vietnamTime(year: string, month: string, day: string, time: string): RealTime | null {
  const instant = parseTimestamp(`${year}-${month}-${day} ${time}`)
  return instant && asRealTime(addMs(instant, -7 * HOUR_MS))
}

/**
 * Identifies a movement without a number by the text before the payer's text (its time, the balance after it) and by the beginning of the
 * payer's text. The sending bank puts its own number there. What follows may be a forwarder's footer.
 */
export function fingerprint(said: readonly string[], content: string): string {
  return sha256Hex([...said, content.slice(0, 60)].join('\n'))
}
