import { setTimeout as delay } from 'node:timers/promises'
import { appNow } from '#apps/app-time.ts'
import type { App, NotifiedApp } from '#apps/store.ts'
import type { Context } from '#context.ts'
import type { Caller } from '#commands/caller.ts'
import { command, nothing } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import { inTransaction } from '#commands/transaction.ts'
import type { Queries } from '#db/queries.ts'
import { readPages } from '#db/read-pages.ts'
import { nodeReference } from '#realtime/firebase.ts'
import { nodeOf, type RealtimeNode } from '#realtime/node.ts'
import { hasRealtimeDatabase, type AppWithDatabase } from '#realtime/realtime-key.ts'
import { findRealtimeWrite, listUnwritten, queueRealtimeWrite } from '#realtime/store.ts'
import { openBudget } from '#shared/budget.ts'
import { AppError, messageOf } from '#shared/errors.ts'
import { writeNodeOf } from './queue-node.ts'
import { findSubscriptionById, getSubscription, type Subscription } from './store.ts'
import { listSubscriptionsAfter } from './lists/store.ts'

/** Nodes written at once, and the least time for them: at most 50 nodes a second, which leaves the app's database to its users. */
const BATCH = 5
const BATCH_MS = 100
const PAGE = 100
/** A database that fails this often in a row is unreachable: another run writes the rest. */
const MAX_FAILURES_IN_A_ROW = 20
const READ_MS = 4500
/** A comparison lists this many nodes and counts the others. */
const MAX_LISTED = 1000
const MAX_LISTED_FAILURES = 20

/** One end user, all subscriptions of the app, or those whose last write failed or never happened. */
export type ResyncScope = { readonly externalRef: string } | 'all' | 'failed'

export interface ResyncInput {
  readonly app: App
  readonly scope: ResyncScope
  /** Continues after this subscription id: `next` of a run that was cut short. */
  readonly after?: number | undefined
  readonly onProgress?: ((progress: ResyncProgress) => void) | undefined
}

export interface ResyncProgress {
  readonly written: number
  readonly failed: number
  /** Every subscription up to this id is done. */
  readonly upTo: number
}

export interface ResyncResult {
  readonly written: number
  readonly failed: number
  /** The `after` to continue with; absent unless the run was cut short. */
  readonly next?: number
  /** The first 20 that failed, and why. */
  readonly failures?: readonly NodeFailure[]
}

export interface NodeFailure {
  readonly external_ref: string
  readonly error: string
}

export interface NodeDifference {
  readonly external_ref: string
  /** The node now; null if there is none. */
  readonly present: unknown
  readonly expected: RealtimeNode
}

/** `written` is 0. */
export interface NodeComparison extends ResyncResult {
  readonly differing: number
  /** The first 1000 of them. */
  readonly differences: readonly NodeDifference[]
}

/**
 * Writes nodes as they should be now. This alone makes the node of an ended period `free` (R163). Throws `invalid_request`
 * for an app without a realtime database, `not_found` for an unknown end user.
 */
export async function resyncNodes(ctx: Context, caller: Caller, input: ResyncInput): Promise<ResyncResult> {
  const app = requireDatabase(input.app)
  const result = await visitNodes(ctx, input, (subscription) => rewriteOne(ctx, app, subscription))
  await perform(ctx, caller, noteResync, undefined, { input, result })
  return result
}

/** Reads the nodes and reports those that `resyncNodes` would change. Throws the same errors. */
export async function compareNodes(ctx: Context, input: ResyncInput): Promise<NodeComparison> {
  const app = requireDatabase(input.app)
  let differing = 0
  const differences: NodeDifference[] = []
  const result = await visitNodes(ctx, input, async (subscription) => {
    try {
      const difference = await differenceOf(ctx, app, subscription)
      if (difference) differing += 1
      if (difference && differences.length < MAX_LISTED) differences.push(difference)
      return { kind: 'compared' }
    } catch (error) {
      return { kind: 'failed', error: messageOf(error) }
    }
  })
  return { ...result, differing, differences }
}

function requireDatabase(app: App): AppWithDatabase {
  if (hasRealtimeDatabase(app)) return app
  throw new AppError('invalid_request', `app ${app.id} has no realtime database: give it one with app set-realtime`)
}

type Outcome = { readonly kind: 'written' | 'compared' } | { readonly kind: 'failed'; readonly error: string }

async function visitNodes(
  ctx: Context,
  input: ResyncInput,
  visit: (subscription: Subscription) => Promise<Outcome>,
): Promise<ResyncResult> {
  const tally = new Tally()
  for await (const batch of batches(ctx, input)) {
    const pause = delay(BATCH_MS)
    await Promise.all(
      batch.map(async (subscriptionId) => {
        const subscription = await getSubscriptionById(ctx, subscriptionId)
        tally.count(subscription.externalRef, await visit(subscription))
      }),
    )
    const upTo = Math.max(...batch)
    input.onProgress?.(tally.progress(upTo))
    if (tally.isUnreachable) return tally.result(upTo)
    await pause
  }
  return tally.result(null)
}

class Tally {
  #written = 0
  #failed = 0
  #failuresInARow = 0
  readonly #failures: NodeFailure[] = []

  count(external_ref: string, outcome: Outcome): void {
    if (outcome.kind === 'written') this.#written += 1
    if (outcome.kind !== 'failed') {
      this.#failuresInARow = 0
      return
    }
    this.#failed += 1
    this.#failuresInARow += 1
    if (this.#failures.length < MAX_LISTED_FAILURES) this.#failures.push({ external_ref, error: outcome.error })
  }

  get isUnreachable(): boolean {
    return this.#failuresInARow >= MAX_FAILURES_IN_A_ROW
  }

  progress(upTo: number): ResyncProgress {
    return { written: this.#written, failed: this.#failed, upTo }
  }

  result(next: number | null): ResyncResult {
    return {
      written: this.#written,
      failed: this.#failed,
      ...(next === null ? {} : { next }),
      ...(this.#failures.length > 0 ? { failures: this.#failures } : {}),
    }
  }
}

/** The ids of the subscriptions in scope, in ascending order. */
async function* batches(ctx: Context, { app, scope, after = 0 }: ResyncInput): AsyncGenerator<number[]> {
  if (typeof scope === 'object') {
    const { id } = await getSubscription(ctx.db, app.id, scope.externalRef)
    yield [id]
    return
  }
  const list = scope === 'all' ? listIds : listUnwritten
  const pages = readPages<number>(PAGE, (last, limit) => list(ctx.db, app.id, last ?? after, limit))
  for await (const page of pages)
    for (let start = 0; start < page.length; start += BATCH) yield page.slice(start, start + BATCH)
}

async function listIds(db: Queries, appId: number, after: number, limit: number): Promise<number[]> {
  return (await listSubscriptionsAfter(db, appId, after, limit)).map(({ id }) => id)
}

async function getSubscriptionById(ctx: Context, subscriptionId: number): Promise<Subscription> {
  const subscription = await findSubscriptionById(ctx.db, subscriptionId)
  if (!subscription) throw new Error(`subscription ${subscriptionId} does not exist`)
  return subscription
}

async function rewriteOne(
  ctx: Context,
  app: NotifiedApp,
  { id: subscriptionId, revision }: Subscription,
): Promise<Outcome> {
  await inTransaction(ctx, (tx) => queueRealtimeWrite(tx, { appId: app.id, subscriptionId, revision }))
  if ((await writeNodeOf(ctx, app, subscriptionId, 'resync')) === 'written') return { kind: 'written' }
  const row = await findRealtimeWrite(ctx.db, subscriptionId)
  return { kind: 'failed', error: row?.lastError ?? 'another writer held the lease all the time' }
}

/** Null if the node is as it should be now. */
async function differenceOf(
  ctx: Context,
  app: AppWithDatabase,
  subscription: Subscription,
): Promise<NodeDifference | null> {
  const { externalRef } = subscription
  const { node: present } = await nodeReference(ctx, app, externalRef, openBudget(READ_MS)).read()
  const now = ctx.clock.now()
  const expected = nodeOf(subscription, 'resync', appNow(app, now), now)
  return isSame(present, expected) ? null : { external_ref: externalRef, present, expected }
}

/** Whether the node already has this content; an absent `expiresAt` is null. */
function isSame(present: unknown, expected: RealtimeNode): boolean {
  if (typeof present !== 'object' || present === null) return false
  const { plan, expiresAt = null, purchaseSource } = present as Partial<Record<keyof RealtimeNode, unknown>>
  return plan === expected.plan && expiresAt === expected.expiresAt && purchaseSource === expected.purchaseSource
}

/** The nodes are written one by one; the audit log gets one entry with the result. */
const noteResync = command({
  name: 'realtime.resync',
  input: nothing,
  async run(tx, _input, { input, result }: { readonly input: ResyncInput; readonly result: ResyncResult }) {
    const { app, scope } = input
    const { written, failed, next = null } = result
    const after = { scope: typeof scope === 'object' ? scope.externalRef : scope, written, failed, next }
    await tx.audit({ appId: app.id, subject: `app ${app.id}`, after })
  },
})
