import { z } from 'zod'
import { getApp, type App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import type { Caller } from '#commands/caller.ts'
import { command, nothing } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import { databaseNow } from '#db/database-now.ts'
import { AppError } from '#shared/errors.ts'
import { formatId, requireId } from '#shared/ids.ts'
import { countFailedEvents, listFailedIds, requeue } from './outcomes/store.ts'
import { requireWebhook } from './read-target.ts'
import { getEvent } from './store.ts'

/** Maximum number of events per transaction. */
const BATCH_SIZE = 50

/**
 * Delivers an event of any status again, with the same id and bytes and all retries. The attempt number continues. Throws `not_found`, or
 * `invalid_request` if its app has no webhook or the event is being delivered.
 */
export const retryEvent = command({
  name: 'webhook.retry',
  input: z.strictObject({ event_id: z.string() }),
  async run(tx, { event_id }) {
    const eventId = requireId('evt', event_id)
    const { appId } = await getEvent(tx, eventId)
    requireWebhook(await getApp(tx, appId))
    const retries = tx.ctx.config.webhook.retryMinutes.length
    if ((await requeue(tx, [eventId], 'any', retries, await databaseNow(tx.ctx, tx))) !== 1) {
      throw new AppError('invalid_request', `${formatId('evt', eventId)} is being delivered: try again in a minute`)
    }
    await tx.audit({ appId, subject: formatId('evt', eventId) })
    tx.afterCommit(tx.ctx.wakeSender)
    return getEvent(tx, eventId)
  },
})

/** How many events `retryFailed` would deliver again. Throws the same errors. */
export async function countFailed(ctx: Context, app: App): Promise<number> {
  requireWebhook(app)
  return countFailedEvents(ctx.db, app.id)
}

/** Delivers all failed events of an app again, in batches, each of them once: some may fail again meanwhile. Returns how many. */
export async function retryFailed(ctx: Context, caller: Caller, app: App): Promise<{ retried: number }> {
  requireWebhook(app)
  let retried = 0
  let afterId: number | null = 0
  do {
    const batch: Batch = await perform(ctx, caller, retryBatch, undefined, { app, afterId })
    retried += batch.retried
    afterId = batch.nextAfterId
  } while (afterId !== null)
  return { retried }
}

interface Batch {
  readonly retried: number
  /** The id to continue from; null after the last batch. */
  readonly nextAfterId: number | null
}

const retryBatch = command({
  name: 'webhook.retry-failed',
  input: nothing,
  async run(tx, _input, { app, afterId }: { readonly app: App; readonly afterId: number }): Promise<Batch> {
    const eventIds = await listFailedIds(tx, app.id, afterId, BATCH_SIZE)
    const nextAfterId = eventIds.length < BATCH_SIZE ? null : (eventIds.at(-1) ?? null)
    if (eventIds.length === 0) return { retried: 0, nextAfterId }
    const retries = tx.ctx.config.webhook.retryMinutes.length
    const retried = await requeue(tx, eventIds, 'failed', retries, await databaseNow(tx.ctx, tx))
    if (retried === 0) return { retried, nextAfterId }
    await tx.audit({ appId: app.id, subject: `app ${app.id}`, after: { retried } })
    tx.afterCommit(tx.ctx.wakeSender)
    return { retried, nextAfterId }
  },
})
