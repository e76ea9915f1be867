import { setTimeout as delay } from 'node:timers/promises'
import { appNow } from '#apps/app-time.ts'
import type { NotifiedApp } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { inTransaction } from '#commands/transaction.ts'
import { randomHex } from '#shared/crypto.ts'
import { messageOf } from '#shared/errors.ts'
import { openBudget, type Budget } from '#shared/budget.ts'
import { STOOD_STILL_MS } from '#shared/time.ts'
import { hasRealtimeDatabase, type AppWithDatabase } from './realtime-key.ts'
import { nodeOf, type NodeState, type WriteReason } from './node.ts'
import { claimWrite, extendLease, findRealtimeWrite, finishWrite, isBeingWritten, releaseWrite } from './store.ts'

/** The budget for waiting, token, read and write together. With its records, a call that writes a node returns within 6 s (R162). */
const WRITE_MS = 4000
/** With less time than this left, a write could fail for lack of it, on a busy machine: the reconcile job makes it. */
const MIN_WRITE_MS = 1000
/** Timers may be this early. */
const TIMER_EARLY_MS = 5
const FIRST_WAIT_MS = 10
const MAX_WAIT_MS = 200
/** A node that changes this often between read and write has another writer. */
const MAX_CONFLICTS = 10

export interface NodeWrite {
  readonly app: NotifiedApp
  readonly subscriptionId: number
  /** The committed state of the subscription; null if it does not exist. */
  readonly load: (subscriptionId: number) => Promise<NodeState | null>
}

/**
 * `pending`: another writer has the lease or took it over, and covers this request, too; if it fails to, the reconcile job does. It also
 * makes a write for which this process left the app's database no time. Also the outcome for an app without a database.
 */
export type WriteOutcome = 'written' | 'failed' | 'pending'

/**
 * Writes the node with the subscription's state at the time of the write, after `queueRealtimeWrite` was committed. Takes 6 s at most and
 * never throws: a failure is recorded in `realtime_writes`, logged and counted (R162). Does nothing for apps
 * without a realtime database. A re-sync always writes by itself, because another writer's change may leave `premium` where a re-sync
 * writes `free`.
 */
export async function writeNode(ctx: Context, write: NodeWrite, reason: WriteReason): Promise<WriteOutcome> {
  const { app, subscriptionId } = write
  if (!hasRealtimeDatabase(app)) return 'pending'
  const leftMs = openBudget(WRITE_MS)
  try {
    return await writeWhenFree(ctx, { ...write, app, reason, leftMs, leaseToken: randomHex(16) })
  } catch (error) {
    ctx.log.error({ appId: app.id, subscriptionId, error }, 'the realtime write could not be recorded')
    return 'failed'
  }
}

interface Writer extends NodeWrite {
  readonly app: AppWithDatabase
  readonly reason: WriteReason
  readonly leftMs: Budget
  readonly leaseToken: string
}

/** One writer at a time: the others wait for the lease, or until it has covered their request. */
async function writeWhenFree(ctx: Context, writer: Writer): Promise<WriteOutcome> {
  do {
    const claimed = await claim(ctx, writer)
    if (claimed.kind === 'finished') return claimed.outcome
    if (claimed.kind === 'claimed') return writeUntilCovered(ctx, writer, claimed.revision)
  } while (await waitForLease(ctx, writer))
  return 'pending'
}

/** Waits until no other writer holds the lease; false if the time is up. */
async function waitForLease(ctx: Context, { subscriptionId, leftMs }: Writer): Promise<boolean> {
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 2, MAX_WAIT_MS)) {
    if (leftMs() < MIN_WRITE_MS + waitMs) return false
    await delay(waitMs / 2 + (Math.random() * waitMs) / 2)
    if (!(await isBeingWritten(ctx.db, subscriptionId))) return true
  }
}

type ClaimResult =
  | { readonly kind: 'claimed'; readonly revision: number }
  | { readonly kind: 'finished'; readonly outcome: WriteOutcome }
  | { readonly kind: 'busy' }

async function claim(ctx: Context, { subscriptionId, leaseToken, reason }: Writer): Promise<ClaimResult> {
  return inTransaction(ctx, async (tx) => {
    const state = reason === 'resync' ? 'any' : 'pending'
    const isClaimed = await claimWrite(tx, subscriptionId, leaseToken, state)
    const row = await findRealtimeWrite(tx, subscriptionId)
    if (!row) throw new Error(`no realtime write was requested for subscription ${subscriptionId}`)
    if (isClaimed) return { kind: 'claimed', revision: row.requestedRevision }
    if (row.state === 'pending' || reason === 'resync') return { kind: 'busy' }
    return { kind: 'finished', outcome: row.state === 'done' ? 'written' : 'failed' }
  })
}

/** Writes the node, and again for requests that arrive in the meantime. */
async function writeUntilCovered(ctx: Context, writer: Writer, firstRevision: number): Promise<WriteOutcome> {
  const { subscriptionId, leaseToken, leftMs } = writer
  let revision: number | null = firstRevision
  while (revision !== null) {
    const { outcome, error } = await attempt(ctx, writer)
    if (outcome !== 'pending' && (await finish(ctx, writer, revision, error))) return outcome
    if (outcome !== 'written' || leftMs() < MIN_WRITE_MS) {
      // The caller of the newer request waits for the lease, or has left it to the reconcile job.
      await inTransaction(ctx, (tx) => releaseWrite(tx, subscriptionId, leaseToken, error))
      return outcome
    }
    revision = await extend(ctx, writer)
  }
  return 'pending'
}

/** Records that the requests up to the revision are covered; false if there are newer ones, or the lease was lost. */
async function finish(
  ctx: Context,
  { subscriptionId, leaseToken }: Writer,
  revision: number,
  error: string | null,
): Promise<boolean> {
  return inTransaction(ctx, (tx) => finishWrite(tx, subscriptionId, leaseToken, revision, error))
}

interface Attempt {
  readonly outcome: WriteOutcome
  /** The error message; null if the node was written. */
  readonly error: string | null
}

async function attempt(ctx: Context, writer: Writer): Promise<Attempt> {
  const { app, subscriptionId, leftMs } = writer
  const hadTime = watchTime(leftMs())
  try {
    await replaceNode(ctx, writer)
    ctx.count('realtime_writes_total', { outcome: 'written' })
    return { outcome: 'written', error: null }
  } catch (error) {
    ctx.log.warn({ appId: app.id, subscriptionId, error }, 'the realtime node was not written')
    if (!hadTime()) return { outcome: 'pending', error: messageOf(error) }
    ctx.count('realtime_writes_total', { outcome: 'failed' })
    return { outcome: 'failed', error: messageOf(error) }
  }
}

/**
 * Returns what says, after a failure, whether the app's database had a fair part of the `ms` milliseconds from now on: the failure came
 * before their end, or this process waited for at least half of them, rather than load code, serve others or stand still.
 */
function watchTime(ms: number): () => boolean {
  const startedMs = performance.now()
  const idleBefore = performance.eventLoopUtilization().idle
  return () => {
    const tookMs = performance.now() - startedMs
    const waitedMs = performance.eventLoopUtilization().idle - idleBefore
    return tookMs < ms - TIMER_EARLY_MS || (tookMs < ms + STOOD_STILL_MS && waitedMs >= ms / 2)
  }
}

/**
 * Reads the node, then the subscription, then writes on condition that the node has not changed. So the node only moves to later states of
 * the subscription, even if an aborted write of an earlier writer arrives late.
 */
async function replaceNode(ctx: Context, writer: Writer): Promise<void> {
  const { app, reason, leftMs } = writer
  const { externalRef } = await loadState(writer)
  const { nodeReference } = await import('./firebase.ts')
  const reference = nodeReference(ctx, app, externalRef, leftMs)
  for (let conflicts = 0; conflicts < MAX_CONFLICTS; conflicts += 1) {
    const { etag } = await reference.read()
    const state = await loadState(writer)
    const now = ctx.clock.now()
    if (await reference.replace(nodeOf(state, reason, appNow(app, now), now), etag)) return
  }
  throw new Error(`the node changed ${MAX_CONFLICTS} times while it was written`)
}

async function loadState({ subscriptionId, load }: Writer): Promise<NodeState> {
  const state = await load(subscriptionId)
  if (!state) throw new Error(`subscription ${subscriptionId} does not exist`)
  return state
}

/** Extends the lease, and returns the revision that is requested now; null if the lease was lost. */
async function extend(ctx: Context, { subscriptionId, leaseToken }: Writer): Promise<number | null> {
  return inTransaction(ctx, async (tx) => {
    if (!(await extendLease(tx, subscriptionId, leaseToken))) return null
    const row = await findRealtimeWrite(tx, subscriptionId)
    return row?.requestedRevision ?? null
  })
}
