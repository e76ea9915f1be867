import { appNow } from '#apps/app-time.ts'
import type { Context } from '#context.ts'
import { job } from '#commands/caller.ts'
import { command, nothing } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import { databaseNow } from '#db/database-now.ts'
import type { AppTime } from '#shared/time.ts'
import { listSweeps, type Sweep } from '#mails/find-due.ts'
import type { Keyset } from '#mails/store.ts'
import type { SweepOptions } from '#mails/send-mails.ts'
import { listRunOut, storeExpired } from './store.ts'

const BATCH_SIZE = 50
const EXPIRY = job('expire')

/**
 * Stores `expired` on subscriptions whose period has ended, and returns how many. Reads do not depend on it, since they compute the
 * status themselves, and no webhook is sent (contract 4, Expiry).
 */
export async function expireDue(ctx: Context, options: SweepOptions = {}): Promise<number> {
  let expired = 0
  for (const sweep of await listSweeps(ctx, options.appId)) expired += await expireOneSweep(ctx, sweep, options.signal)
  return expired
}

/** Whether there is anything to store. */
export async function hasRunOut(ctx: Context): Promise<boolean> {
  const now = await databaseNow(ctx, ctx.db)
  for (const sweep of await listSweeps(ctx)) {
    if ((await listRunOut(ctx.db, sweep.scope, appNow(sweep, now), null, 1)).length > 0) return true
  }
  return false
}

async function expireOneSweep(ctx: Context, sweep: Sweep, signal: AbortSignal | undefined): Promise<number> {
  let expired = 0
  let after: Keyset | null = null
  while (!signal?.aborted) {
    const now = appNow(sweep, await databaseNow(ctx, ctx.db))
    const batch: Keyset[] = await listRunOut(ctx.db, sweep.scope, now, after, BATCH_SIZE)
    const subscriptionIds = batch.map(({ id }) => id)
    if (subscriptionIds.length > 0) expired += await perform(ctx, EXPIRY, expire, undefined, { subscriptionIds, now })
    if (batch.length < BATCH_SIZE) break
    after = batch.at(-1) ?? null
  }
  return expired
}

/** Not in the audit log: the status only follows from the period's end. */
const expire = command({
  name: 'subscription.expire',
  input: nothing,
  isRepeatable: true,
  run: (tx, _input, scope: { readonly subscriptionIds: readonly number[]; readonly now: AppTime }) =>
    storeExpired(tx, scope.subscriptionIds, scope.now),
})
