import { randomDigits } from '#shared/crypto.ts'
import { parseNumericId } from '#shared/ids.ts'
import { HOUR_MS, MINUTE_MS, addMs, asRealTime, parseTimestamp, type RealTime } from '#shared/time.ts'

/** PayOS's own page of a payment link. PayOS returns the address only when the link is created, and that answer may be lost. */
const PAYMENT_PAGE = 'https://pay.payos.vn/web/'
const RANDOM_DIGITS = 6
const TEXT_DIGITS = 7
/** How many ids with the same last digits are looked for. */
const MOST_IDS = 100
/** How far PayOS's clock, by which it dates links, may be from ours. */
const CLOCK_SKEW_MS = 5 * MINUTE_MS
/** PayOS requires the end of a link to be in the future, by its own clock. */
const MIN_DURATION_MS = 5 * MINUTE_MS
const VIETNAM_MS = 7 * HOUR_MS

/**
 * An order code: the transaction's id, for operators, and six random digits. The digits keep the codes of two installations, or of a
 * database that was set up again, from colliding at one merchant.
 */
export function newOrderCode(transactionId: number): string {
  const code = `${transactionId}${randomDigits(RANDOM_DIGITS)}`
  if (!Number.isSafeInteger(Number(code))) throw new Error(`transaction ${transactionId} has no order code`)
  return code
}

/** The text on the payer's bank statement: 9 characters, the maximum for a bank account that is not linked through PayOS. */
export function transferTextOf(transactionId: number): string {
  return `PG${String(transactionId).slice(-TEXT_DIGITS)}`
}

/** Such a text, whatever banks put around it; null if there is none. */
function ownTextIn(text: string): string | null {
  const [, digits = ''] = /(?<![0-9A-Z])PG([0-9]{1,7})(?![0-9A-Z])/i.exec(text) ?? []
  return digits === '' ? null : `PG${digits}`
}

/**
 * The ids of the transactions that such a text may name; none if there is no such text. Ids have more digits than the text after a backup was
 * restored, because of the gap behind its ids.
 */
export function transactionsIn(text: string): number[] {
  const own = ownTextIn(text)
  if (own === null) return []
  const candidates = Array.from({ length: MOST_IDS }, (_, index) => Number(own.slice(2)) + index * 10 ** TEXT_DIGITS)
  return candidates.filter((id) => id > 0 && transferTextOf(id) === own)
}

/** Whether a paid order has a code and a text of one transaction, as we make them. */
export function isOwnOrder(orderCode: number, text: unknown): boolean {
  const id = parseNumericId(String(orderCode).slice(0, -RANDOM_DIGITS))
  return id !== null && typeof text === 'string' && ownTextIn(text) === transferTextOf(id)
}

/** The end of a payment link opened now for a checkout that ends at `checkoutEnd`. */
export function linkEnd(checkoutEnd: RealTime, now: RealTime): RealTime {
  const earliest = addMs(now, MIN_DURATION_MS)
  return checkoutEnd < earliest ? earliest : checkoutEnd
}

/** The address of a link's page: as PayOS returned it, or built in the same way. */
export function paymentPageOf(link: { readonly id: string; readonly checkoutUrl?: unknown }): string {
  return typeof link.checkoutUrl === 'string' ? link.checkoutUrl : `${PAYMENT_PAGE}${encodeURIComponent(link.id)}`
}

/** Whether a link with our order code is the one that we opened: it has our amount, and is not older than our intent. */
export function isOurLink(
  link: { readonly amount: number; readonly createdAt?: string },
  session: { readonly amount: number; readonly createdAt: RealTime },
): boolean {
  const createdAt = parsePayosTime(link.createdAt)
  return link.amount === session.amount && (createdAt === null || createdAt >= addMs(session.createdAt, -CLOCK_SKEW_MS))
}

/** Reads PayOS's times: ISO 8601 with an offset, or `YYYY-MM-DD HH:MM:SS` in Vietnam; null for anything else. */
export function parsePayosTime(text: string | undefined): RealTime | null {
  const local = parseTimestamp(text ?? '')
  if (local) return asRealTime(addMs(local, -VIETNAM_MS))
  if (!/^\d{4}-\d{2}-\d{2}T.*(Z|[+-]\d{2}:?\d{2})$/.test(text ?? '')) return null
  const ms = Date.parse(text ?? '')
  return Number.isNaN(ms) ? null : asRealTime(new Date(ms))
}
