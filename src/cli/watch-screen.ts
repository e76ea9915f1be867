import type { WatchReading } from '#support/read-watch.ts'
import type { ScreenSize } from './alternate-screen.ts'
import { appCell, minuteCell, moneyCell } from './cells.ts'
import { Coloured } from './coloured.ts'
import { formatFields, formatTable } from './table.ts'

type Payment = WatchReading['payments'][number]

/** A reading whose payments say whether their apps are sandboxes. */
export interface ShownReading extends Omit<WatchReading, 'payments'> {
  readonly payments: readonly (Payment & { readonly sandbox: boolean | null })[]
}

/** A job that has not run for this long needs attention. */
const QUIET_SECONDS = 600
/** The lines of a table that are no rows: head, rule, and two for what it has no room for. */
const TABLE_FRAME = 4
const KEYS = 'q quits'
const UNREADABLE = new Coloured('cannot be read', 'red')

/** A reading as lines of a screen: never more lines than it has rows. Payments fill the rest. */
export function drawWatch(reading: ShownReading, { columns, rows }: ScreenSize): string[] {
  const title = `Paygate  ${reading.at} UTC  ${KEYS}`
  const upper = [title, '', ...linesOf(healthFields(reading, columns)), '', ...jobLines(reading), '']
  const room = Math.max(1, rows - upper.length - TABLE_FRAME)
  return [...upper, ...linesOf(paymentTable(reading, columns, room))].slice(0, rows)
}

/** A failure to read, above the last reading: never more lines than the screen has rows. */
export function drawFailure(failure: string, last: ShownReading | null, { columns, rows }: ScreenSize): string[] {
  const upper = [`Paygate  ${KEYS}`, '', ...linesOf(formatFields({ failed: new Coloured(failure, 'red') }, columns))]
  if (!last) return upper.slice(0, rows)
  const [, ...below] = drawWatch(last, { columns, rows: Math.max(1, rows - upper.length - 1) })
  return [...upper, '', `as of ${last.at} UTC`, ...below].slice(0, rows)
}

function linesOf(text: string): string[] {
  return text.split('\n')
}

function healthFields(reading: WatchReading, columns: number): string {
  const { daemon, outbox, flagged } = reading
  const fields = {
    daemon: daemon.answers
      ? new Coloured('answers', 'green')
      : new Coloured(`${daemon.error ?? ''}; ${daemon.fix ?? ''}`, 'red'),
    requests: rateWords(reading.requests_per_second),
    deliveries: rateWords(reading.deliveries_per_second),
    outbox: outboxCell(outbox),
    'needs review': flaggedCell(flagged),
  }
  return formatFields(fields, columns)
}

function rateWords(rate: number | null): string {
  return rate === null ? '-' : `${rate.toFixed(1)} per second`
}

function outboxCell(outbox: WatchReading['outbox']): Coloured | string {
  if (!outbox) return UNREADABLE
  const { events, oldest_due_seconds: lag } = outbox
  const words = `${events} waiting, the oldest due for ${lag} s`
  return lag > QUIET_SECONDS / 2 ? new Coloured(words, 'red') : words
}

function flaggedCell(flagged: WatchReading['flagged']): Coloured | string {
  if (!flagged) return UNREADABLE
  return flagged.length === 0 ? 'nothing' : new Coloured(flagged.map(flaggedWords).join('; '), 'red')
}

type FlaggedPart = NonNullable<WatchReading['flagged']>[number]

function flaggedWords({ sandbox, reason, currency, transactions, unapplied }: FlaggedPart): string {
  return `${sandbox ? '[TEST] ' : ''}${transactions} ${reason} with ${moneyCell(unapplied, currency)}`
}

/** The jobs and how long ago each ran: `expire 12 s`. */
function jobLines({ jobs }: WatchReading): string[] {
  if (!jobs) return [`jobs: ${UNREADABLE.text}`]
  const words = jobs.map(({ job, seconds_since_run: seconds }) => `${job} ${seconds} s`)
  return words.length === 0
    ? ['jobs: none has run yet']
    : [`jobs, last run: ${words.slice(0, 2).join(', ')}`, `  ${words.slice(2).join(', ')}`]
}

function paymentTable({ payments }: ShownReading, columns: number, most: number): string {
  const rows = payments
    .slice(0, most)
    .map((row) => [
      minuteCell(row.received_at)?.slice(11),
      appCell(row),
      row.external_ref,
      moneyCell(row.amount, row.currency),
      row.provider_code,
      row.reason === null ? new Coloured('received', 'green') : new Coloured(row.reason, 'red'),
    ])
  const head = ['at', 'app', 'external_ref', 'payment', 'by', 'state']
  return formatTable(
    { head, rows, none: 'no payments yet', optional: ['by', 'external_ref'], codes: ['by', 'state'] },
    columns,
  )
}
