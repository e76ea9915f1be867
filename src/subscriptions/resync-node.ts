import { setTimeout as delay } from 'node:timers/promises'
import { appNow } from '#apps/app-time.ts'
import type { App } from '#apps/store.ts'
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
import { writeNode } from '#realtime/write-node.ts'
import { openBudget } from '#shared/budget.ts'
import { AppError, messageOf } from '#shared/errors.ts'
import { loadNodeState } from './queue-node.ts'
import { findSubscriptionById, getSubscription, type Subscription } from './store.ts'
import { listSubscriptionsAfter } from './lists/store.ts'

/** Nodes written at once, and the least time for them: at most 50 nodes a second, which leaves the app's database to its users. */
const BATCH = 5
const BATCH_MS = 100
const PAGE = 100
/** A database that fails this often in a row is unreachable: another run writes the rest. */
const MAX_FAILURES_IN_A_ROW = 20
const READ_MS = 4500
/** A dry run lists this many nodes and counts the others. */
const MAX_LISTED = 1000
const MAX_LISTED_FAILURES = 20

export interface ResyncInput {
  readonly app: App
  /** Exactly one of the three: one end user, all subscriptions, or those whose last write failed or never happened. */
  readonly externalRef?: string | undefined
  readonly all?: boolean | undefined
  readonly failed?: boolean | undefined
  /** Reads the nodes and reports what would be written. */
  readonly dryRun?: boolean | undefined
  /** Continues after this subscription id: `next` of a run that was cut short. */
  readonly after?: number | undefined
  readonly onProgress?: ((progress: ResyncProgress) => void) | undefined
  readonly signal?: AbortSignal | undefined
  readonly caller: Caller
}

export interface ResyncProgress {
  readonly written: number
  readonly failed: number
  /** Every subscription up to this id is done. */
  readonly upTo: number
}

export interface NodeDifference {
  readonly external_ref: string
  /** The node now; null if there is none. */
  readonly present: unknown
  readonly expected: RealtimeNode
}

export interface ResyncResult {
  readonly written: number
  readonly failed: number
  /** The `after` to continue with; absent unless the run was cut short. */
  readonly next?: number
  /** The first 20 that failed, and why. */
  readonly failures?: readonly NodeFailure[]
  /** Of a dry run: how many nodes differ, and the first 1000 of them. */
  readonly differing?: number
  readonly differences?: readonly NodeDifference[]
}

export interface NodeFailure {
  readonly external_ref: string
  readonly error: string
}

/**
 * Writes nodes as they should be now. This alone makes the node of an ended period `free` (R163). Throws `invalid_request`
 * for an app without a realtime database or unless exactly one of the three scopes is given, `not_found` for an unknown end user.
 */
export async function resyncNodes(ctx: Context, input: ResyncInput): Promise<ResyncResult> {
  const { app } = input
  if (!hasRealtimeDatabase(app)) {
    throw new AppError('invalid_request', `app ${app.id} has no realtime database: give it one with app set-realtime`)
  }
  if ([input.externalRef !== undefined, input.all, input.failed].filter(Boolean).length !== 1) {
    throw new AppError('invalid_request', 'name one external_ref, or all, or failed')
  }
  const result = await runResync(ctx, { ...input, app })
  if (!input.dryRun) await perform(ctx, input.caller, noteResync, undefined, { input, result })
  return result
}

type Run = ResyncInput & { readonly app: AppWithDatabase }

async function runResync(ctx: Context, run: Run): Promise<ResyncResult> {
  const tally = openTally(run.after ?? 0)
  for await (const batch of batches(ctx, run)) {
    const pause = delay(BATCH_MS)
    await Promise.all(
      batch.map((subscriptionId) =>
        run.dryRun ? compareNode(ctx, run.app, subscriptionId, tally) : rewriteOne(ctx, run.app, subscriptionId, tally),
      ),
    )
    tally.upTo = Math.max(...batch)
    run.onProgress?.({ written: tally.written, failed: tally.failed, upTo: tally.upTo })
    if (run.signal?.aborted || tally.failuresInARow >= MAX_FAILURES_IN_A_ROW) return resultOf(run, tally, tally.upTo)
    await pause
  }
  return resultOf(run, tally, null)
}

interface Tally {
  written: number
  failed: number
  failuresInARow: number
  upTo: number
  differing: number
  readonly differences: NodeDifference[]
  readonly failures: NodeFailure[]
}

function openTally(upTo: number): Tally {
  return { written: 0, failed: 0, failuresInARow: 0, upTo, differing: 0, differences: [], failures: [] }
}

function resultOf(run: Run, tally: Tally, next: number | null): ResyncResult {
  const { written, failed, differing, differences, failures } = tally
  return {
    written,
    failed,
    ...(next === null ? {} : { next }),
    ...(failures.length > 0 ? { failures } : {}),
    ...(run.dryRun ? { differing, differences } : {}),
  }
}

/** The ids of the subscriptions to write, in ascending order. */
async function* batches(ctx: Context, run: Run): AsyncGenerator<number[]> {
  if (run.externalRef !== undefined) {
    const { id } = await getSubscription(ctx.db, run.app.id, run.externalRef)
    yield [id]
    return
  }
  const list = run.all ? listIds : listUnwritten
  const pages = readPages<number>(PAGE, (last, limit) => list(ctx.db, run.app.id, last ?? run.after ?? 0, limit))
  for await (const page of pages)
    for (let start = 0; start < page.length; start += BATCH) yield page.slice(start, start + BATCH)
}

async function listIds(db: Queries, appId: number, after: number, limit: number): Promise<number[]> {
  return (await listSubscriptionsAfter(db, appId, after, limit)).map(({ id }) => id)
}

async function rewriteOne(ctx: Context, app: App, subscriptionId: number, tally: Tally): Promise<void> {
  const { externalRef, revision } = await getSubscriptionById(ctx, subscriptionId)
  await inTransaction(ctx, (tx) => queueRealtimeWrite(tx, { appId: app.id, subscriptionId, revision }))
  const load = (id: number) => loadNodeState(ctx, id)
  const outcome = await writeNode(ctx, { app, subscriptionId, load }, 'resync')
  if (outcome === 'written') {
    countSuccess(tally, 1)
    return
  }
  const row = await findRealtimeWrite(ctx.db, subscriptionId)
  countFailure(tally, externalRef, row?.lastError ?? 'another writer held the lease all the time')
}

async function compareNode(ctx: Context, app: AppWithDatabase, subscriptionId: number, tally: Tally): Promise<void> {
  const state = await getSubscriptionById(ctx, subscriptionId)
  const { externalRef } = state
  try {
    const { node: present } = await nodeReference(ctx, app, externalRef, openBudget(READ_MS)).read()
    const now = ctx.clock.now()
    const expected = nodeOf(state, 'resync', appNow(app, now), now)
    countSuccess(tally, 0)
    if (isSame(present, expected)) return
    tally.differing += 1
    if (tally.differences.length < MAX_LISTED) tally.differences.push({ external_ref: externalRef, present, expected })
  } catch (error) {
    countFailure(tally, externalRef, messageOf(error))
  }
}

async function getSubscriptionById(ctx: Context, subscriptionId: number): Promise<Subscription> {
  const subscription = await findSubscriptionById(ctx.db, subscriptionId)
  if (!subscription) throw new Error(`subscription ${subscriptionId} does not exist`)
  return subscription
}

/** Whether the node already has this content; an absent `expiresAt` is null. */
function isSame(present: unknown, expected: RealtimeNode): boolean {
  if (typeof present !== 'object' || present === null) return false
  const { plan, expiresAt = null, purchaseSource } = present as Partial<Record<keyof RealtimeNode, unknown>>
  return plan === expected.plan && expiresAt === expected.expiresAt && purchaseSource === expected.purchaseSource
}

function countSuccess(tally: Tally, written: number): void {
  tally.written += written
  tally.failuresInARow = 0
}

function countFailure(tally: Tally, externalRef: string, error: string): void {
  tally.failed += 1
  tally.failuresInARow += 1
  if (tally.failures.length < MAX_LISTED_FAILURES) tally.failures.push({ external_ref: externalRef, error })
}

/** The nodes are written one by one; the audit log gets one entry with the result. */
const noteResync = command({
  name: 'realtime.resync',
  input: nothing,
  async run(tx, _input, { input, result }: { readonly input: ResyncInput; readonly result: ResyncResult }) {
    const { app, externalRef, all } = input
    const scope = externalRef ?? (all ? 'all' : 'failed')
    const { written, failed, next = null } = result
    await tx.audit({ appId: app.id, subject: `app ${app.id}`, after: { scope, written, failed, next } })
  },
})
