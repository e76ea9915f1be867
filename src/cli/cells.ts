import { counted } from '#shared/counted.ts'
import { englishMoney } from '#shared/money.ts'
import { Coloured, type Colour } from './coloured.ts'
import { markOf } from './session.ts'

/** The colour of each state that a command shows; others have none. */
const COLOURS: Readonly<Record<Colour, readonly string[]>> = {
  green: ['PASS', 'active', 'completed', 'delivered', 'enabled', 'in use', 'processed', 'sent', 'succeeded', 'yes'],
  yellow: ['WARN', 'claimed', 'due', 'needs review', 'pending', 'unconfirmed', 'underpaid'],
  red: ['FAIL', 'failed', 'refused', 'rejected'],
  gray: ['archived', 'disabled', 'dropped', 'expired', 'forgotten', 'not_configured', 'refunded', 'void'],
}

/** A state in its colour. */
export function stateCell(state: string | null): Coloured | string | null {
  const found = Object.entries(COLOURS).find(([, states]) => state !== null && states.includes(state))
  return found && state !== null ? new Coloured(state, found[0] as Colour) : state
}

/** A transaction's status and, if it is flagged, the reason: an operator must decide. */
export function standingCell(status: string, flagReason: string | null): Coloured | string | null {
  return flagReason === null ? stateCell(status) : new Coloured(`${status} ${flagReason}`, 'red')
}

/** `2026-12-21 20:42` of a timestamp; the head of its column says that it is UTC. */
export function minuteCell(timestamp: string | null): string | null {
  return timestamp?.slice(0, 16) ?? null
}

/** `₫99,000`; `?` for an unknown amount. */
export function moneyCell(amount: number | bigint | null, currency: string): string {
  return amount === null ? `? ${currency}` : englishMoney(amount, currency)
}

/** `₫99,000`; nothing for a row that is about no money. */
export function amountCell(row: { readonly amount: number | null; readonly currency: string | null }): string | null {
  return row.currency === null ? null : moneyCell(row.amount, row.currency)
}

/** `₫90,000 of ₫99,000` where another amount than the price was received; else the price. */
export function receivedCell(row: {
  readonly amount: number
  readonly amount_received: number
  readonly currency: string
}): string {
  const { amount, amount_received: received, currency } = row
  const part = received === 0 || received === amount ? '' : `${moneyCell(received, currency)} of `
  return `${part}${moneyCell(amount, currency)}`
}

/** `[TEST] 1`: the app of a row, in a list of all apps. */
export function appCell(row: { readonly app_id: number | null; readonly sandbox: boolean | null }): string | null {
  return row.app_id === null ? null : `${markOf(row.sandbox === true)} ${row.app_id}`
}

const STAGES: Readonly<Record<number, string>> = { 3: '3 days before', 1: '1 day before', 0: 'expired' }

/** When a reminder goes out: `3 days before`, `1 day before`, `expired`. */
export function stageCell(reminderDay: number): string {
  return STAGES[reminderDay] ?? String(reminderDay)
}

/** `1 month`, `7 days` */
export function countedUnit(count: number | null, unit: string | null): string {
  return counted(count ?? 1, unit ?? '')
}

/** `₫99,000/month`, `₫270,000/3 months`, `₫2,900,000 lifetime` */
export function priceCell(price: {
  readonly amount: number
  readonly currency: string
  readonly interval_unit: string
  readonly interval_count: number | null
}): string {
  const { amount, currency, interval_unit: unit, interval_count: count } = price
  const money = moneyCell(amount, currency)
  if (unit === 'lifetime') return `${money} lifetime`
  return `${money}/${count === 1 ? unit : countedUnit(count, unit)}`
}

/** The method of a stored provider's code: `card` of `stripe`. */
export async function methodCells(): Promise<(code: string | null) => string | null> {
  const { providerOfCode } = await import('#providers/providers.ts')
  return (code) => (code === null ? null : (providerOfCode(code)?.method ?? code))
}
