import { appNow } from '#apps/app-time.ts'
import { listClockGroups, type ClockGroup } from '#apps/clock-groups.ts'
import { getApp } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { job } from '#commands/caller.ts'
import { command, nothing } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import { databaseNow } from '#db/database-now.ts'
import { readPages } from '#db/read-pages.ts'
import type { AppTime } from '#shared/time.ts'
import { expiredData } from '#subscriptions/present.ts'
import { findSubscriptionById, lockEndUserOf, subscriptions, viewSubscription } from '#subscriptions/store.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import type { SweepOptions } from '#mails/send-mails.ts'
import { listRunOut, storeExpired, type RunOut } from './store.ts'

const BATCH_SIZE = 50
const EXPIRY = job('expire')

/**
 * Stores `expired` on subscriptions whose period has ended, and returns how many. Reads do not depend on it, since they compute the status
 * themselves. Only apps that opted in to `subscription.expired` get an event (R118).
 */
export async function expireDue(ctx: Context, options: SweepOptions = {}): Promise<number> {
  let expired = 0
  for (const group of await listClockGroups(ctx, options.appId)) expired += await expireIn(ctx, group, options.signal)
  return expired
}

/** Whether any subscription must be stored as `expired`. */
export async function hasRunOut(ctx: Context): Promise<boolean> {
  const now = await databaseNow(ctx, ctx.db)
  for (const group of await listClockGroups(ctx)) {
    if ((await listRunOut(ctx.db, group.scope, appNow(group, now), null, 1)).length > 0) return true
  }
  return false
}

async function expireIn(ctx: Context, group: ClockGroup, signal: AbortSignal | undefined): Promise<number> {
  let expired = 0
  const now = appNow(group, await databaseNow(ctx, ctx.db))
  const batches = readPages<RunOut>(BATCH_SIZE, (after, limit) => listRunOut(ctx.db, group.scope, now, after, limit))
  for await (const batch of batches) {
    if (signal?.aborted) break
    const subscriptionIds = batch.filter(({ isAnnounced }) => !isAnnounced).map(({ id }) => id)
    for (const { id, isAnnounced } of batch)
      if (isAnnounced) expired += await perform(ctx, EXPIRY, expireAndAnnounce, undefined, { subscriptionId: id, now })
    if (subscriptionIds.length > 0) expired += await perform(ctx, EXPIRY, expire, undefined, { subscriptionIds, now })
  }
  return expired
}

/** Not in the audit log, because the status follows from the end of the period. */
const expire = command({
  name: 'subscription.expire',
  input: nothing,
  isRepeatable: true,
  run: (tx, _input, scope: { readonly subscriptionIds: readonly number[]; readonly now: AppTime }) =>
    storeExpired(tx, scope.subscriptionIds, scope.now),
})

/**
 * Emits one event when the row leaves `active`. A period that was extended in the meantime has not ended. Under the end user's lock, because
 * a late payment reports the end of the period if it finds the row `active`.
 */
const expireAndAnnounce = command({
  name: 'subscription.expire',
  input: nothing,
  isRepeatable: true,
  async run(tx, _input, { subscriptionId, now }: { readonly subscriptionId: number; readonly now: AppTime }) {
    await lockEndUserOf(tx, subscriptions, subscriptionId)
    const expired = await storeExpired(tx, [subscriptionId], now)
    const subscription = expired === 1 ? await findSubscriptionById(tx, subscriptionId) : null
    if (!subscription?.currentPeriodEnd) return expired
    const { appId, currentPeriodEnd, inTrial } = subscription
    const data = expiredData(await viewSubscription(tx, subscription), currentPeriodEnd, inTrial)
    const app = await getApp(tx, appId)
    await emitEvent(tx, { app, type: 'subscription.expired', data })
    return expired
  },
})
