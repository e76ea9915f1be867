import { mkdirSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { readPages } from '#db/read-pages.ts'
import { formatCsv } from '#reports/csv.ts'
import { localTimestamp } from '#reports/month.ts'
import { methodNamed } from '#reports/months.ts'
import { currencyDecimals, decimalString } from '#shared/money.ts'
import { mergeSorted } from './merge-sorted.ts'
import { listFreePurchases, listSoldPayments, listSoldRefunds, type SaleRow } from './store.ts'

const COLUMNS = [
  ...['date', 'transaction_id', 'external_ref', 'customer', 'plan', 'method', 'reference', 'gross', 'discount'],
  ...['promotion_code', 'amount', 'currency', 'refunded', 'period_from', 'period_to'],
]
const PAGE = 500

/**
 * Writes `sales.csv` into a folder, for bookkeeping (R425): a row for each payment whose payer is known and for each refund, about in the
 * order of their times. Returns how many rows. Reads and writes page by page, so that its memory does not grow with the app.
 */
export async function exportSales(
  ctx: Context,
  app: App,
  folder: string,
  onPage?: (rows: number) => void,
): Promise<number> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  await using table = await open(join(folder, 'sales.csv'), 'w', 0o600)
  await table.appendFile(formatCsv([], { header: true, columns: COLUMNS }))
  const zone = app.pageSettings?.time_zone ?? 'UTC'
  let count = 0
  for await (const rows of pagesOf(salesOf(ctx, app))) {
    await table.appendFile(
      formatCsv(
        rows.map((row) => cellsOf(row, zone)),
        { header: false, columns: COLUMNS },
      ),
    )
    count += rows.length
    onPage?.(count)
  }
  return count
}

function salesOf(ctx: Context, app: App): AsyncGenerator<SaleRow> {
  const sources = [listSoldPayments, listSoldRefunds, listFreePurchases]
  return mergeSorted(
    sources.map((list) => rowsOf(ctx, app, list)),
    ({ at }) => at.getTime(),
  )
}

async function* rowsOf(
  ctx: Context,
  { id: appId, isSandbox }: App,
  list: typeof listSoldPayments,
): AsyncGenerator<SaleRow> {
  const scope = { appId, mode: isSandbox ? 'test' : 'live' } as const
  const pages = readPages<SaleRow>(PAGE, (last, limit) => list(ctx.db, { ...scope, afterId: last?.id ?? 0, limit }))
  for await (const page of pages) yield* page
}

async function* pagesOf(rows: AsyncGenerator<SaleRow>): AsyncGenerator<SaleRow[]> {
  let page: SaleRow[] = []
  for await (const row of rows) {
    page.push(row)
    if (page.length < PAGE) continue
    yield page
    page = []
  }
  if (page.length > 0) yield page
}

function cellsOf(row: SaleRow, zone: string): Record<string, unknown> {
  const decimal = (amount: number | bigint): string => decimalString(amount, currencyDecimals(row.currency))
  const local = (instant: Date | null): string => (instant ? localTimestamp(instant, zone) : '')
  return {
    date: local(row.at),
    transaction_id: row.transactionId,
    external_ref: row.externalRef,
    customer: row.customer,
    plan: row.planRef,
    method: methodNamed(row.provider),
    reference: row.reference,
    // A sum of two amounts may exceed the integers that a number holds exactly.
    gross: decimal(BigInt(row.received) + BigInt(row.discount)),
    discount: decimal(row.discount),
    promotion_code: row.promotionCode,
    amount: decimal(row.received),
    currency: row.currency,
    refunded: decimal(row.refunded),
    period_from: local(row.periodFrom),
    period_to: local(row.periodTo),
  }
}
