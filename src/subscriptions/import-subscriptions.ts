import { parse } from 'csv-parse/sync'
import { z } from 'zod'
import { appNow } from '#apps/app-time.ts'
import type { App } from '#apps/store.ts'
import { rehearsing, type Context } from '#context.ts'
import { newCustomerOf } from '#customers/create-customer.ts'
import { findCustomerFor, insertCustomer } from '#customers/store.ts'
import type { Caller } from '#commands/caller.ts'
import { command } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import type { Tx } from '#commands/transaction.ts'
import { findPrice, type PriceWithPlan } from '#plans/store.ts'
import { AppError, clipped, messageOf } from '#shared/errors.ts'
import { bareCell } from '#shared/formula-cell.ts'
import { parseId } from '#shared/ids.ts'
import { formatTimestampOrNull, parseAppTime } from '#shared/time.ts'
import { emailAddress, externalRef, name } from '#shared/validate.ts'
import { checkRealtimeKey } from '#realtime/realtime-key.ts'
import { unpaidLine } from './unpaid-line.ts'
import { intervalOf } from './decide-payment.ts'
import { lastDayOfMonth, periodFrom, type Period } from './period.ts'
import { recordChange } from './record-change.ts'
import { findSubscriptionOfEndUser, getPlanAndCustomer, lockEndUser } from './store.ts'

/** Characters of a customer's name; an address may be longer. */
const MAX_NAME = 191

/** A line of the file, before it is interpreted. */
const ImportLine = z.strictObject({
  external_ref: externalRef,
  price_id: z.string(),
  /** `YYYY-MM-DD HH:MM:SS` in UTC; empty for a lifetime price. */
  current_period_end: z.string(),
  anchor_day: z
    .string()
    .regex(/^([1-9]|[12]\d|3[01])?$/, 'must be a day from 1 to 31')
    .optional(),
  customer_email: z.union([z.literal(''), emailAddress]).optional(),
  customer_name: z.union([z.literal(''), name(MAX_NAME)]).optional(),
})
type ImportLine = z.infer<typeof ImportLine>

/** Each may occur in one file. With the one of the header alone, lines are taken together, or counted twice. */
const LINE_ENDS = ['\r\n', '\n', '\r']

const COLUMNS = ['external_ref', 'price_id', 'current_period_end']

export interface LineReport {
  /** The line of the file; for a row with line breaks in a quoted cell, its last line. The header is line 1. */
  readonly line: number
  readonly external_ref: string
  readonly result: 'imported' | 'would_import' | 'skipped' | 'refused'
  readonly reason: string | null
}

export interface ImportReport {
  readonly imported: number
  readonly skipped: number
  readonly refused: number
  readonly lines: readonly LineReport[]
}

/**
 * Imports subscriptions that were sold elsewhere, from CSV with the columns `external_ref,price_id,current_period_end` and optionally
 * `anchor_day,customer_email,customer_name`. Skips end users who have a subscription, so that an interrupted run can be repeated. Removes
 * the apostrophe that `app export` puts before a cell that a spreadsheet would execute. A dry run writes nothing. Throws `invalid_request`
 * for a file that is not such a table.
 */
export async function importSubscriptions(
  ctx: Context,
  caller: Caller,
  app: App,
  csv: string,
  options: { readonly dryRun: boolean; readonly onLine?: (done: number, of: number) => void },
): Promise<ImportReport> {
  const rows = readTable(csv)
  const lines: LineReport[] = []
  // A rehearsed line leaves no subscription for a later line of the same end user to find.
  const imported = new Set<string>()
  for (const row of rows) {
    lines.push(await importLine(ctx, caller, app, { ...row, isDryRun: options.dryRun, imported }))
    options.onLine?.(lines.length, rows.length)
  }
  const count = (result: LineReport['result']) => lines.filter((line) => line.result === result).length
  return { imported: count('imported'), skipped: count('skipped'), refused: count('refused'), lines }
}

interface TableRow {
  readonly line: number
  readonly record: Readonly<Record<string, string>>
}

function readTable(csv: string): TableRow[] {
  try {
    const options = { columns: requireColumns, bom: true, trim: true, skip_empty_lines: true, cast: bareCell }
    const rows = parse(csv, { ...options, record_delimiter: LINE_ENDS, info: true }) as unknown as {
      record: TableRow['record']
      info: { lines: number }
    }[]
    return rows.map(({ record, info }) => ({ line: info.lines, record }))
  } catch (error) {
    throw new AppError('invalid_request', `the file is not a CSV table: ${messageOf(error)}`)
  }
}

/** Without this check, each line of a file that separates cells by semicolons would be refused separately. */
function requireColumns(header: string[]): string[] {
  const missing = COLUMNS.filter((name) => !header.includes(name))
  if (missing.length > 0) throw new Error(`missing CSV columns: ${missing.join(', ')}`)
  return header
}

async function importLine(
  ctx: Context,
  caller: Caller,
  app: App,
  { line, record, isDryRun, imported }: TableRow & { readonly isDryRun: boolean; readonly imported: Set<string> },
): Promise<LineReport> {
  const named = { line, external_ref: record['external_ref'] ?? '' }
  const inner = isDryRun ? rehearsing(ctx) : ctx
  try {
    const isNew = await perform(inner, caller, importSubscription, record, { app })
    if (!isNew || imported.has(named.external_ref))
      return { ...named, result: 'skipped', reason: 'has a subscription already' }
    imported.add(named.external_ref)
    return { ...named, result: isDryRun ? 'would_import' : 'imported', reason: null }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return { ...named, result: 'refused', reason: error.message }
  }
}

async function requirePrice(tx: Tx, app: App, { price_id }: ImportLine): Promise<PriceWithPlan> {
  const id = parseId('price', price_id)
  const found = id === null ? null : await findPrice(tx, app.id, id)
  if (!found) throw new AppError('invalid_request', `price_id: ${clipped(price_id)} is not a price of this app`)
  return found
}

/** The period ends at the time in the file, and began one interval earlier. The anchor day preserves month ends. */
function periodOf(app: App, input: ImportLine, { price }: PriceWithPlan): Period {
  const interval = intervalOf(price, false)
  const end = parseAppTime(input.current_period_end)
  if (interval.unit === 'lifetime') {
    if (input.current_period_end !== '')
      throw new AppError('invalid_request', 'current_period_end: must be empty for a lifetime price')
    return { start: appNow(app, price.createdAt), end: null, anchorDay: null }
  }
  if (!end) throw new AppError('invalid_request', 'current_period_end: must be YYYY-MM-DD HH:MM:SS in UTC')
  const anchorDay = input.anchor_day ? Number(input.anchor_day) : end.getUTCDate()
  if (end.getUTCDate() !== Math.min(anchorDay, lastDayOfMonth(end)))
    throw new AppError(
      'invalid_request',
      `anchor_day: a period that aims at day ${anchorDay} cannot end on day ${end.getUTCDate()} of its month`,
    )
  const start = periodFrom(end, { unit: interval.unit, count: -interval.count }, anchorDay).end ?? end
  return { start, end, anchorDay }
}

/** Imports one line; false if the end user already has a subscription. */
const importSubscription = command({
  name: 'subscription.import',
  input: ImportLine,
  async run(tx, input, { app }: { readonly app: App }): Promise<boolean> {
    checkRealtimeKey(app, input.external_ref)
    const found = await requirePrice(tx, app, input)
    const period = periodOf(app, input, found)
    const endUserId = await lockEndUser(tx, app.id, input.external_ref)
    if (await findSubscriptionOfEndUser(tx, endUserId)) return false
    const customerId = await customerOf(tx, app, input)
    const set = { planId: found.plan.id, priceId: found.price.id, customerId, period, inTrial: false }
    const line = await unpaidLine(tx, app, 'imported', set)
    const planAndCustomer = await getPlanAndCustomer(tx, { appId: app.id, ...set })
    const owner = { endUserId, externalRef: input.external_ref }
    const { subscription: saved } = await recordChange(tx, app, { before: null, owner, set, line, planAndCustomer })
    await tx.audit({
      appId: app.id,
      subject: `subscription ${saved.id}`,
      after: { price_id: input.price_id, current_period_end: formatTimestampOrNull(period.end) },
    })
    return true
  },
})

/** The app's customer with this address, unless another end user created it. Creates one if there is none; null if the file names none. */
async function customerOf(
  tx: Tx,
  app: App,
  { external_ref: externalRef, customer_email: email, customer_name: name }: ImportLine,
): Promise<number | null> {
  if (!email) return null
  const known = await findCustomerFor(tx, app.id, externalRef, email)
  if (known) return known.id
  return insertCustomer(tx, newCustomerOf(app, { name: name || email.slice(0, MAX_NAME), email }, tx.now))
}
