import type { Context } from '#context.ts'
import { inTransaction } from '#db/transaction.ts'
import { randomHex, sha256Hex } from '#shared/crypto.ts'
import { AppError, invalidField } from '#shared/errors.ts'
import { addMs, DAY_MS, MINUTE_MS } from '#shared/time.ts'
import { errorBody } from './errors.ts'
import {
  deleteIdempotencyKey,
  findIdempotencyKey,
  insertIdempotencyKey,
  storeAnswer,
  takeOverIdempotencyKey,
} from './store.ts'
import type { IdempotencyKey } from './store.ts'

/** How long the first answer is given again (contract 2). */
export const ANSWER_KEPT_MS = DAY_MS
/** A request that takes longer has died with its daemon: the next one with its key may run. */
const LEASE_MS = 2 * MINUTE_MS

export interface Answer {
  readonly status: number
  readonly body: Buffer
}

export interface KeyedRequest {
  readonly appId: number
  readonly path: string
  readonly key: string
  /** Distinguishes callers within an app, so that one end user never reads another's answer. */
  readonly subject: string
  readonly body: Buffer
  readonly requestId: string
}

/**
 * Runs the request once for its `Idempotency-Key`: the first answer is kept and given again. Answers that a retry may better (5xx)
 * are not kept. Throws `idempotency_conflict` for another body under the same key, and while the first request still runs.
 */
export async function answerOnce(ctx: Context, request: KeyedRequest, run: () => Promise<Answer>): Promise<Answer> {
  if (!/^[\x20-\x7e]{1,255}$/.test(request.key))
    throw invalidField('Idempotency-Key', 'must be 1 to 255 printable ASCII characters')
  const scope = { appId: request.appId, pathHash: sha256Hex(request.path), idempotencyKey: request.key }
  const leaseToken = randomHex(16)
  const kept = await claimKey(
    ctx,
    scope,
    sha256Hex(Buffer.concat([Buffer.from(`${request.subject}\n`), request.body])),
    leaseToken,
  )
  if (kept) return kept
  const release = () => inTransaction(ctx, (tx) => deleteIdempotencyKey(tx, leaseToken, scope))
  let answer: Answer
  try {
    answer = await run()
  } catch (thrown) {
    if (!(thrown instanceof AppError) || thrown.status >= 500) {
      await release()
      throw thrown
    }
    answer = { status: thrown.status, body: Buffer.from(JSON.stringify(errorBody(thrown, request.requestId))) }
  }
  await inTransaction(ctx, (tx) => storeAnswer(tx, leaseToken, scope, answer.status, answer.body))
  return answer
}

type Scope = Pick<IdempotencyKey, 'appId' | 'pathHash' | 'idempotencyKey'>

/** The kept answer; null where this request holds the key now and must run. */
async function claimKey(ctx: Context, scope: Scope, requestHash: string, leaseToken: string): Promise<Answer | null> {
  return inTransaction(ctx, async (tx) => {
    const leaseUntil = addMs(tx.now, LEASE_MS)
    const fresh = { requestHash, leaseToken, leaseUntil }
    const row = { ...scope, ...fresh, answerStatus: null, answerBody: null, createdAt: tx.now }
    if (await insertIdempotencyKey(tx, row)) return null
    const first = await findIdempotencyKey(tx, scope)
    if (!first) throw stillRunning()
    const isOld = first.createdAt < addMs(tx.now, -ANSWER_KEPT_MS)
    const isDead = first.answerStatus === null && first.leaseUntil < tx.now
    if (isOld || (isDead && first.requestHash === requestHash)) {
      if (await takeOverIdempotencyKey(tx, first, fresh)) return null
      throw stillRunning()
    }
    if (first.requestHash !== requestHash) {
      throw new AppError('idempotency_conflict', 'this Idempotency-Key was used with another body')
    }
    if (first.answerStatus === null || !first.answerBody) throw stillRunning()
    return { status: first.answerStatus, body: first.answerBody }
  })
}

function stillRunning(): AppError {
  return new AppError('idempotency_conflict', 'the first request with this Idempotency-Key is still running', {
    headers: { 'Retry-After': '1' },
  })
}
