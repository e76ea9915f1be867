import { setTimeout as delay } from 'node:timers/promises'
import { appNow } from '#apps/app-time.ts'
import type { ToldApp } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import { randomHex } from '#shared/crypto.ts'
import { messageOf } from '#shared/errors.ts'
import { openBudget, type Budget } from '#shared/budget.ts'
import { hasRealtimeDatabase, type AppWithDatabase } from './realtime-key.ts'
import { nodeOf, type NodeState, type WriteReason } from './node.ts'
import {
  claimWrite,
  extendLease,
  findRealtimeWrite,
  isBeingWritten,
  settleWrite,
  wantWrite,
  yieldWrite,
} from './store.ts'

/** Waiting for a turn, token, read and write together; with its records, a call that writes a node returns within 6 s (contract 4). */
const WRITE_MS = 4000
/** Longer than any write lasts, so that a lease runs out only when its writer died. */
const LEASE_SECONDS = 20
/** A writer with less than this left would only fail. */
const LEAST_MS = 250
const FIRST_WAIT_MS = 10
const LONGEST_WAIT_MS = 200
/** Content that changes this often under our hands is written by somebody else too. */
const MAX_CONFLICTS = 10

export interface NodeWrite {
  readonly app: ToldApp
  readonly subscriptionId: number
  /** The subscription as committed now; null where it is not there. */
  readonly load: (subscriptionId: number) => Promise<NodeState | null>
}

/** `unsettled`: another writer had its turn all the time; it covers this wish too, or the reconcile job does. */
export type WriteOutcome = 'written' | 'failed' | 'unsettled'

/** Wants the node written, in the transaction of the change that it shows. `writeNode` follows after the commit. */
export async function queueRealtimeWrite(
  tx: Tx,
  wish: { readonly appId: number; readonly subscriptionId: number; readonly revision: number },
): Promise<void> {
  await wantWrite(tx, wish)
}

/**
 * Writes the node of a subscription as it stands at the write. Takes 5 s at most and never throws: a failure is recorded on the
 * subscription's row, logged and counted (contract 4, Realtime node). Does nothing for apps without a realtime database.
 */
export async function writeNode(ctx: Context, write: NodeWrite): Promise<void> {
  await settleNode(ctx, write, 'change')
}

/**
 * As `writeNode`, and tells what became of it. A re-sync writes by itself always, since the change that another writer covers may
 * have left `premium` where it would write `free`.
 */
export async function settleNode(ctx: Context, write: NodeWrite, reason: WriteReason): Promise<WriteOutcome> {
  const { app, subscriptionId } = write
  if (!hasRealtimeDatabase(app)) return 'unsettled'
  const leftMs = openBudget(WRITE_MS)
  try {
    return await takeTurns(ctx, { ...write, app, reason, leftMs, leaseToken: randomHex(16) })
  } catch (error) {
    ctx.log.error({ appId: app.id, subscriptionId, error }, 'the realtime write could not be processed')
    return 'failed'
  }
}

interface Turn extends NodeWrite {
  readonly app: AppWithDatabase
  readonly reason: WriteReason
  readonly leftMs: Budget
  readonly leaseToken: string
}

/** One writer at a time: the others wait until it has covered what they want, or for their turn. */
async function takeTurns(ctx: Context, turn: Turn): Promise<WriteOutcome> {
  do {
    const standing = await claimTurn(ctx, turn)
    if (standing.kind === 'settled') return standing.outcome
    if (standing.kind === 'ours') return writeUntilSettled(ctx, turn, standing.wantedRevision)
  } while (await waitForTurn(ctx, turn))
  return 'unsettled'
}

/** Waits until nobody is writing; false where the time is up before. */
async function waitForTurn(ctx: Context, { subscriptionId, leftMs }: Turn): Promise<boolean> {
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)) {
    if (leftMs() < LEAST_MS + waitMs) return false
    await delay(waitMs / 2 + (Math.random() * waitMs) / 2)
    if (!(await isBeingWritten(ctx.db, subscriptionId))) return true
  }
}

type Standing =
  | { readonly kind: 'ours'; readonly wantedRevision: number }
  | { readonly kind: 'settled'; readonly outcome: WriteOutcome }
  | { readonly kind: 'taken' }

async function claimTurn(ctx: Context, { subscriptionId, leaseToken, reason }: Turn): Promise<Standing> {
  return inTransaction(ctx, async (tx) => {
    const isOurs = await claimWrite(tx, subscriptionId, leaseToken, LEASE_SECONDS, reason === 'resync')
    const row = await findRealtimeWrite(tx, subscriptionId)
    if (!row) throw new Error(`nothing is wanted of the node of subscription ${subscriptionId}`)
    if (isOurs) return { kind: 'ours', wantedRevision: row.wantedRevision }
    if (row.state === 'pending' || reason === 'resync') return { kind: 'taken' }
    return { kind: 'settled', outcome: row.state === 'done' ? 'written' : 'failed' }
  })
}

/** Writes, and again where more was wanted meanwhile. */
async function writeUntilSettled(ctx: Context, turn: Turn, firstRevision: number): Promise<WriteOutcome> {
  for (let wanted: number | null = firstRevision; wanted !== null;) {
    const fault = await attempt(ctx, turn)
    if (await settle(ctx, turn, wanted, fault)) return fault === null ? 'written' : 'failed'
    if (fault !== null || turn.leftMs() < LEAST_MS) {
      // Who wanted more is waiting for the turn, or has left it to the reconcile job.
      await inTransaction(ctx, (tx) => yieldWrite(tx, turn.subscriptionId, turn.leaseToken, fault))
      return fault === null ? 'written' : 'failed'
    }
    wanted = await anotherRound(ctx, turn)
  }
  return 'unsettled'
}

/** Null where the node was written; the reason where it was not. */
async function attempt(ctx: Context, turn: Turn): Promise<string | null> {
  const { app, subscriptionId } = turn
  try {
    await replaceNode(ctx, turn)
    ctx.count('realtime_writes_total', { outcome: 'written' })
    return null
  } catch (error) {
    ctx.log.warn({ appId: app.id, subscriptionId, error }, 'the realtime node was not written')
    ctx.count('realtime_writes_total', { outcome: 'failed' })
    return messageOf(error)
  }
}

/**
 * Reads what is there, then the subscription, then writes on condition that what was read is there still: so the node only ever
 * moves to a later state of the subscription, even where an aborted write of a writer before us arrives late.
 */
async function replaceNode(ctx: Context, { app, subscriptionId, load, reason, leftMs }: Turn): Promise<void> {
  const subject = await load(subscriptionId)
  if (!subject) throw new Error(`subscription ${subscriptionId} is not there`)
  const { nodePlace } = await import('./firebase.ts')
  const place = nodePlace(ctx, app, subject.externalRef, leftMs)
  for (let conflicts = 0; conflicts < MAX_CONFLICTS; conflicts += 1) {
    const { etag } = await place.read()
    const state = await load(subscriptionId)
    if (!state) throw new Error(`subscription ${subscriptionId} is not there`)
    const now = ctx.clock.now()
    if (await place.replace(nodeOf(state, reason, appNow(app, now), now), etag)) return
  }
  throw new Error(`the node changed ${MAX_CONFLICTS} times while it was written`)
}

async function settle(ctx: Context, turn: Turn, wanted: number, fault: string | null): Promise<boolean> {
  return inTransaction(ctx, (tx) => settleWrite(tx, turn.subscriptionId, turn.leaseToken, wanted, fault))
}

/** What is wanted now, with the lease kept; null where the lease was lost. */
async function anotherRound(ctx: Context, { subscriptionId, leaseToken }: Turn): Promise<number | null> {
  return inTransaction(ctx, async (tx) => {
    if (!(await extendLease(tx, subscriptionId, leaseToken, LEASE_SECONDS))) return null
    const row = await findRealtimeWrite(tx, subscriptionId)
    return row && row.wantedRevision
  })
}
