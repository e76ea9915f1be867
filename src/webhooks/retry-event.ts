import { getApp, type App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { recordAudit } from '#commands/audit.ts'
import { inTransaction } from '#commands/transaction.ts'
import { databaseNow } from '#db/database-now.ts'
import { AppError, notFound } from '#shared/errors.ts'
import { formatId } from '#shared/ids.ts'
import { findEvent, listFailedIds, requeue, type Event } from './store.ts'

/** Events made due again in one transaction. */
const BATCH_SIZE = 50
const MOST_COUNTED = 1_000_000

/**
 * Delivers an event again, whatever became of it: the same id and bytes, attempts count on, and the whole retry schedule is before
 * it again. Throws `not_found`, or `invalid_request` where its app has no webhook or the event is under way at this moment.
 */
export async function retryEvent(ctx: Context, actor: string, eventId: number): Promise<Event> {
  return inTransaction(ctx, async (tx) => {
    const event = await findEvent(tx, eventId)
    if (!event) throw notFound(`event ${formatId('evt', eventId)}`)
    requireWebhook(await getApp(tx, event.appId))
    const now = await databaseNow(ctx, tx)
    if ((await requeue(tx, [eventId], ctx.config.webhook.retryMinutes.length, now)) !== 1) {
      throw new AppError('invalid_request', `${formatId('evt', eventId)} is being delivered at this moment`)
    }
    await recordAudit(tx, { actor, action: 'webhook.retry', appId: event.appId, subject: formatId('evt', eventId) })
    tx.afterCommit(ctx.wakeSender)
    return (await findEvent(tx, eventId)) ?? event
  })
}

/** How many events `retryFailed` would deliver again; throws as it would. */
export async function countFailed(ctx: Context, app: App): Promise<number> {
  requireWebhook(app)
  return inTransaction(ctx, async (tx) => (await listFailedIds(tx, app.id, MOST_COUNTED)).length)
}

/** Delivers all failed events of an app again. Returns how many. */
export async function retryFailed(ctx: Context, actor: string, app: App): Promise<{ retried: number }> {
  requireWebhook(app)
  let retried = 0
  for (;;) {
    const batch = await retryBatch(ctx, app)
    retried += batch
    if (batch < BATCH_SIZE) break
  }
  await inTransaction(ctx, (tx) =>
    recordAudit(tx, {
      actor,
      action: 'webhook.retry-failed',
      appId: app.id,
      subject: `app ${app.id}`,
      after: { retried },
    }),
  )
  return { retried }
}

function retryBatch(ctx: Context, app: App): Promise<number> {
  return inTransaction(ctx, async (tx) => {
    const eventIds = await listFailedIds(tx, app.id, BATCH_SIZE)
    if (eventIds.length === 0) return 0
    tx.afterCommit(ctx.wakeSender)
    return requeue(tx, eventIds, ctx.config.webhook.retryMinutes.length, await databaseNow(ctx, tx))
  })
}

/** Throws `invalid_request` where an app cannot be told anything. */
export function requireWebhook(app: App): void {
  if (app.webhookUrl !== null && app.webhookSecret !== null) return
  const lacking = app.webhookUrl === null ? 'webhook address' : 'webhook secret'
  throw new AppError('invalid_request', `app ${app.id} has no ${lacking}`)
}
