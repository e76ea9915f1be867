import { mkdirSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { appNow } from '#apps/app-time.ts'
import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { presentCustomer } from '#customers/present.ts'
import { customers } from '#customers/store.ts'
import { readPages } from '#db/read-pages.ts'
import type { Source } from '#db/table.ts'
import { allocations, payments, refunds } from '#payments/store.ts'
import { presentPlan } from '#plans/present.ts'
import { getPlan, plans } from '#plans/store.ts'
import { presentPromotion } from '#promotions/present.ts'
import { getPromotion, promotions } from '#promotions/store.ts'
import { formatId } from '#shared/ids.ts'
import { formatTimestamp, formatTimestampOrNull } from '#shared/time.ts'
import { presentSubscription } from '#subscriptions/present.ts'
import { reminders } from '#mails/reminders/store.ts'
import { ledgerLines, subscriptions, viewSubscription } from '#subscriptions/store.ts'
import { presentTransaction } from '#transactions/present.ts'
import { shownTransactions } from '#transactions/store.ts'
import { receipts } from '#transactions/receipts/store.ts'
import { presentEvent } from '#webhooks/present.ts'
import { events } from '#webhooks/store.ts'
import { formatCsv } from './csv.ts'
import { listRowsAfter, type AppRow } from './store.ts'

type Shown = Readonly<Record<string, unknown>>

interface Part {
  readonly name: string
  readonly pages: (ctx: Context, app: App) => AsyncGenerator<readonly Shown[]>
}

const PAGE = 500

/** What is exported, as the API shows it, without secrets, tokens and keys of providers. */
const PARTS: readonly Part[] = [
  part('plans', plans, async (ctx, app, { id }) => presentPlan(await getPlan(ctx.db, app.id, id))),
  part('promotions', promotions, async (ctx, app, { id }) => presentPromotion(await getPromotion(ctx.db, app.id, id))),
  part('customers', customers, (_ctx, _app, row) => presentCustomer(row)),
  part('subscriptions', subscriptions, async (ctx, app, row) => ({
    subscription_id: row.id,
    external_ref: row.externalRef,
    ...presentSubscription(await viewSubscription(ctx.db, row), appNow(app, ctx.clock.now())),
    anchor_day: row.anchorDay,
    promotion_code: row.promotionCode,
    created_at: formatTimestamp(row.createdAt),
  })),
  part('transactions', shownTransactions, (_ctx, _app, row) => presentTransaction(row)),
  part('payments', payments, (_ctx, _app, row) => ({
    payment_id: row.id,
    provider_code: row.provider,
    reference: row.reference,
    amount: row.amount,
    amount_left: row.amountLeft,
    currency: row.currency,
    paid_at: formatTimestamp(row.paidAt),
    received_at: formatTimestamp(row.receivedAt),
    closed_at: formatTimestampOrNull(row.closedAt),
  })),
  part('allocations', allocations, (_ctx, _app, row) => ({
    payment_id: row.paymentId,
    transaction_id: row.transactionId,
    refund_id: row.refundId,
    amount: row.amount,
    cause: row.cause,
    at: formatTimestamp(row.at),
  })),
  part('refunds', refunds, (_ctx, _app, row) => ({
    refund_id: row.id,
    payment_id: row.paymentId,
    amount: row.amount,
    status: row.status,
    reference: row.reference,
    created_at: formatTimestamp(row.createdAt),
    ended_at: formatTimestampOrNull(row.endedAt),
  })),
  part('ledger', ledgerLines, (_ctx, _app, row) => ({
    subscription_id: row.subscriptionId,
    revision: row.revision,
    transaction_id: row.transactionId,
    kind: row.kind,
    price_id: formatId('price', row.priceId),
    interval_unit: row.intervalUnit,
    interval_count: row.intervalCount,
    is_trial: row.isTrial,
    end_before: formatTimestampOrNull(row.endBefore),
    end_after: formatTimestampOrNull(row.endAfter),
    anchor_day: row.anchorAfter,
    applied_at: formatTimestamp(row.paidAt),
  })),
  part('reminders', reminders, (_ctx, _app, row) => ({
    reminder_id: row.id,
    subscription_id: row.subscriptionId,
    reminder_day: row.stage,
    period_end: formatTimestamp(row.periodEnd),
    status: row.status,
    sent_at: formatTimestampOrNull(row.sentAt),
  })),
  part('receipts', receipts, (_ctx, _app, row) => ({
    receipt_id: row.id,
    transaction_id: row.transactionId,
    kind: row.kind,
    amount: row.amount,
    status: row.status,
    created_at: formatTimestamp(row.createdAt),
    sent_at: formatTimestampOrNull(row.sentAt),
  })),
  part('events', events, (_ctx, _app, row) => ({ ...presentEvent(row) })),
]

/**
 * Writes all of an app's data into a folder, each table as JSON Lines and as CSV; returns how many rows of each. Reads and writes page
 * by page, so that its memory does not grow with the app.
 */
export async function exportApp(
  ctx: Context,
  app: App,
  folder: string,
  onPart?: (name: string, rows: number) => void,
): Promise<Record<string, number>> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const counts: Record<string, number> = {}
  for (const each of PARTS) {
    counts[each.name] = await writePart(ctx, app, folder, each)
    onPart?.(each.name, counts[each.name] ?? 0)
  }
  return counts
}

function part<T extends AppRow>(
  name: string,
  source: Source<T>,
  present: (ctx: Context, app: App, row: T) => Shown | Promise<Shown>,
): Part {
  return {
    name,
    async *pages(ctx, app) {
      const pages = readPages<T>(PAGE, (last, limit) => listRowsAfter(ctx.db, source, app.id, last?.id ?? 0, limit))
      for await (const page of pages) yield await Promise.all(page.map(async (row) => present(ctx, app, row)))
    },
  }
}

async function writePart(ctx: Context, app: App, folder: string, { name, pages }: Part): Promise<number> {
  await using lines = await open(join(folder, `${name}.jsonl`), 'w', 0o600)
  await using table = await open(join(folder, `${name}.csv`), 'w', 0o600)
  let count = 0
  for await (const rows of pages(ctx, app)) {
    await lines.appendFile(rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
    await table.appendFile(formatCsv(rows, { header: count === 0 }))
    count += rows.length
  }
  return count
}
