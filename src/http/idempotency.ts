import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import type { Queries } from '#db/queries.ts'
import { inTransaction } from '#commands/transaction.ts'
import { withTimeout } from '#shared/budget.ts'
import { randomHex, sha256Hex } from '#shared/crypto.ts'
import { AppError, invalidField } from '#shared/errors.ts'
import { addMs, DAY_MS, SECOND_MS } from '#shared/time.ts'
import { errorBody } from './errors.ts'
import {
  findIdempotencyKey,
  insertIdempotencyKey,
  releaseIdempotencyKey,
  renewIdempotencyKey,
  storeAnswer,
  takeOverIdempotencyKey,
  type IdempotencyKey,
  type KeyScope,
} from './store.ts'

/** How long the first answer is kept (R230). */
export const ANSWER_KEPT_MS = DAY_MS
/** A request that did not renew its lease has died with its daemon or lost the database: the next one with its key may run. */
const LEASE_MS = 20 * SECOND_MS
const RENEW_MS = 5 * SECOND_MS
/** Maximum time that the caller of a failed request waits for the release of its key. */
const RELEASE_MS = SECOND_MS

export interface Answer {
  readonly status: number
  readonly body: Buffer
  /** Whether it is the answer that another request got. */
  readonly isReplayed?: boolean
}

export interface KeyedRequest {
  readonly appId: number
  readonly path: string
  readonly key: string
  /** The end user, empty for the app's server: each has keys of its own. */
  readonly subject: string
  readonly body: Buffer
  readonly requestId: string
}

/** Stores the answer in the transaction that it belongs to. */
export type KeepAnswer = (queries: Queries, answer: Answer) => Promise<void>

/** Work that is one transaction calls `keep` as its last step there; other work never does. */
export type KeyedWork = (keep: KeepAnswer) => Promise<Answer>

/** Ends a transaction of a request that has lost the lease of its key, or was committed already although the answer to COMMIT was lost. */
class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
}

/**
 * Runs the request once for its `Idempotency-Key` and keeps its answer for repetitions: committed with the work if that calls `keep`,
 * otherwise stored after it. Answers that a retry may improve (5xx and 429) are not kept. Throws `idempotency_conflict` for another body
 * under the same key, and while the first request is running.
 */
export async function answerOnce(ctx: Context, request: KeyedRequest, work: KeyedWork): Promise<Answer> {
  if (!/^[\x20-\x7e]{1,255}$/.test(request.key))
    throw invalidField('Idempotency-Key', 'must be 1 to 255 printable ASCII characters')
  const scope = { appId: request.appId, pathHash: sha256Hex(scopeTextOf(request)), idempotencyKey: request.key }
  const requestHash = sha256Hex(Buffer.concat([Buffer.from(`${request.subject}\n`), request.body]))
  const leaseToken = randomHex(16)
  const kept = await claimKey(ctx, scope, requestHash, leaseToken)
  if (kept) return kept
  const lease: Lease = { ctx, scope, leaseToken, isOver: false, hasKept: false }
  const timer = setInterval(() => void renew(lease), RENEW_MS)
  try {
    return await runLeased(lease, request, work)
  } catch (thrown) {
    if (thrown instanceof LeaseLost) return await keptAnswer(lease, requestHash)
    lease.isOver = true
    await release(lease)
    throw thrown
  } finally {
    lease.isOver = true
    clearInterval(timer)
  }
}

/** Unambiguous, since no path holds a line break. */
function scopeTextOf({ path, subject }: KeyedRequest): string {
  return subject === '' ? path : `${path}\n${subject}`
}

interface Lease {
  readonly ctx: Context
  readonly scope: KeyScope
  readonly leaseToken: string
  /** The request has its answer. */
  isOver: boolean
  /** A run of the work has stored its answer; its transaction may have been rolled back. */
  hasKept: boolean
}

async function runLeased(lease: Lease, request: KeyedRequest, work: KeyedWork): Promise<Answer> {
  const { ctx, scope, leaseToken } = lease
  const keep: KeepAnswer = async (queries, answer) => {
    if (!(await storeAnswer(queries, leaseToken, scope, answer))) throw new LeaseLost()
    lease.hasKept = true
  }
  const { answer, isRefusal } = await answerOrRefusal(request, () => work(keep))
  if (lease.hasKept && !isRefusal) return answer
  const isStored = await inTransaction(ctx, (tx) => storeAnswer(tx, leaseToken, scope, answer))
  // The request was refused after an earlier run had kept an answer. If that run was committed, its answer counts.
  if (lease.hasKept && !isStored) throw new LeaseLost()
  return answer
}

async function answerOrRefusal(
  { requestId }: KeyedRequest,
  run: () => Promise<Answer>,
): Promise<{ answer: Answer; isRefusal: boolean }> {
  try {
    return { answer: await run(), isRefusal: false }
  } catch (thrown) {
    if (!(thrown instanceof AppError) || thrown.status >= 500 || thrown.code === 'rate_limited') throw thrown
    const body = Buffer.from(JSON.stringify(errorBody(thrown, requestId)))
    return { answer: { status: thrown.status, body }, isRefusal: true }
  }
}

async function renew(lease: Lease): Promise<void> {
  const { ctx, scope, leaseToken } = lease
  try {
    await inTransaction(ctx, async (tx) => {
      // Retried for seconds while the database is unreachable: the request may have ended.
      if (lease.isOver) return
      const leaseUntil = addMs(await databaseNow(ctx, tx), LEASE_MS)
      await renewIdempotencyKey(tx, leaseToken, scope, leaseUntil)
    })
  } catch (error) {
    ctx.log.warn({ error }, 'the lease of an Idempotency-Key was not renewed')
  }
}

/** Lets a retry run at once. While the database is unreachable, the key stays leased until its lease expires. */
async function release({ ctx, scope, leaseToken }: Lease): Promise<void> {
  const released = inTransaction(ctx, (tx) => releaseIdempotencyKey(tx, leaseToken, scope))
  try {
    await withTimeout(released, RELEASE_MS, new Error(`not released in ${RELEASE_MS} ms`))
  } catch (error) {
    ctx.log.warn({ error }, 'an Idempotency-Key was not released: it is free when its lease expires')
  }
}

/** The answer that was committed for the same request. */
async function keptAnswer({ ctx, scope, leaseToken }: Lease, requestHash: string): Promise<Answer> {
  const first = await findIdempotencyKey(ctx.db, scope)
  if (first?.requestHash !== requestHash) throw stillRunning()
  return answerOf(first, leaseToken)
}

/** Throws if there is none yet. */
function answerOf({ answerStatus, answerBody, leaseToken }: IdempotencyKey, ownLease: string): Answer {
  if (answerStatus === null || !answerBody) throw stillRunning()
  return { status: answerStatus, body: answerBody, isReplayed: leaseToken !== ownLease }
}

/** The kept answer; null if this request leases the key now and must run. */
async function claimKey(
  ctx: Context,
  scope: KeyScope,
  requestHash: string,
  leaseToken: string,
): Promise<Answer | null> {
  return inTransaction(ctx, async (tx) => {
    const now = await databaseNow(ctx, tx)
    const fresh = { requestHash, leaseToken, leaseUntil: addMs(now, LEASE_MS), createdAt: now }
    const row = { ...scope, ...fresh, answerStatus: null, answerBody: null }
    if (await insertIdempotencyKey(tx, row)) return null
    const first = await findIdempotencyKey(tx, scope)
    if (!first) throw stillRunning()
    // Leased by this very request, in a COMMIT whose answer was lost.
    if (first.leaseToken === leaseToken) return null
    const isOld = first.createdAt < addMs(now, -ANSWER_KEPT_MS)
    const isDead = first.answerStatus === null && first.leaseUntil < now
    if (isOld || (isDead && first.requestHash === requestHash)) {
      if (await takeOverIdempotencyKey(tx, first, fresh)) return null
      throw stillRunning()
    }
    if (first.requestHash !== requestHash) {
      throw new AppError('idempotency_conflict', 'this Idempotency-Key was used with another body')
    }
    return answerOf(first, leaseToken)
  })
}

function stillRunning(): AppError {
  return new AppError('idempotency_conflict', 'the first request with this Idempotency-Key is still running', {
    headers: { 'Retry-After': '1' },
  })
}
