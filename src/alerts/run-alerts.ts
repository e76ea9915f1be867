import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from '#context.ts'
import { inTransaction } from '#commands/transaction.ts'
import { databaseNow } from '#db/database-now.ts'
import { messageOf } from '#shared/errors.ts'
import { DAY_MS, SECOND_MS, addMs } from '#shared/time.ts'
import type { Memory } from './conditions/evaluation.ts'
import { evaluateAlerts, newMemory, type Readers } from './evaluate-alerts.ts'
import { sendDigest } from './send-digest.ts'
import { sendMessages } from './send-messages.ts'
import { deleteOldAlerts } from './store.ts'
import { verifyNightly } from './verify-nightly.ts'

/** Pause between two steps of the nightly verification, so that payments are not delayed. */
const STEP_PAUSE_MS = 200
const KEPT_MS = 90 * DAY_MS
const DELETED_AT_ONCE = 1000

export interface AlertsJob {
  readonly signal: AbortSignal
  readonly report: (done: object) => Promise<void>
}

/** Evaluates the alerts every `BILLING_ALERT_SECONDS` and sends the due messages, until the signal. Verifies the ledger in the meantime. */
export async function runAlerts(ctx: Context, { signal, report }: AlertsJob): Promise<void> {
  const memory = newMemory(ctx.clock.now())
  let nightly: Promise<void> | null = null
  while (!signal.aborted) {
    try {
      nightly ??= workNightly(ctx, signal).finally(() => (nightly = null))
      await report(await alertOnce(ctx, memory))
    } catch (error) {
      ctx.log.error({ error: messageOf(error) }, 'alerts could not be evaluated')
    }
    await delay(ctx.config.alerts.seconds * SECOND_MS, undefined, { signal }).catch(() => undefined)
  }
  await nightly
}

/** Evaluates the alerts once, and sends what is due. */
export async function alertOnce(
  ctx: Context,
  memory: Memory,
  readers?: Readers,
): Promise<{ readonly opened: number; readonly closed: number; readonly sent: number }> {
  const evaluated = await evaluateAlerts(ctx, memory, readers)
  await sendDigest(ctx).catch((error: unknown) =>
    ctx.log.error({ error: messageOf(error) }, 'the digest could not be written: the next evaluation tries again'),
  )
  return { ...evaluated, sent: await sendMessages(ctx) }
}

/** Verifies the ledger and deletes what is old, if that is due. */
async function workNightly(ctx: Context, signal: AbortSignal): Promise<void> {
  try {
    const hasVerified = await verifyNightly(ctx, () => delay(STEP_PAUSE_MS, undefined, { signal }))
    if (hasVerified) await deleteOld(ctx)
  } catch (error) {
    if (!signal.aborted) ctx.log.error({ error: messageOf(error) }, 'the ledger could not be verified')
  }
}

/** Deletes a batch of old alerts and messages; the rest is deleted the next night. */
export async function deleteOld(ctx: Context): Promise<void> {
  try {
    const before = addMs(await databaseNow(ctx, ctx.db), -KEPT_MS)
    await inTransaction(ctx, (tx) => deleteOldAlerts(tx, before, DELETED_AT_ONCE))
  } catch (error) {
    ctx.log.error({ error: messageOf(error) }, 'old alerts could not be deleted')
  }
}
