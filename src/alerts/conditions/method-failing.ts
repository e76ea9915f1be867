import type { AlertCondition } from '#alerts/kinds.ts'
import { countAttempts, type MethodAttempts } from '#alerts/store.ts'
import type { Context } from '#context.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, addMs } from '#shared/time.ts'
import { isFarBelow, type Completions } from './decide-failing.ts'
import type { Evaluation } from './evaluation.ts'

/** Payers have half an hour: payments that were begun later may still be completed. */
const STILL_PAYABLE_MS = 30 * MINUTE_MS
const RECENT_MS = 3 * HOUR_MS
const USUAL_MS = 14 * DAY_MS
/** The usual share changes slowly, and reading it takes two weeks of payments. */
const USUAL_KEPT_MS = HOUR_MS

/** Methods with far fewer completed payments than usual. */
export async function methodFailing({ db }: Context, { now, memory }: Evaluation): Promise<AlertCondition[]> {
  const from = addMs(now, -STILL_PAYABLE_MS - RECENT_MS)
  if (!memory.usual || memory.usual.at < addMs(now, -USUAL_KEPT_MS))
    memory.usual = { at: now, attempts: await countAttempts(db, addMs(now, -USUAL_MS), from) }
  const usual = new Map(memory.usual.attempts.map((one) => [keyOf(one), one]))
  const recent = await countAttempts(db, from, addMs(now, -STILL_PAYABLE_MS))
  return recent.flatMap((one) => {
    const before = usual.get(keyOf(one))
    if (!before || !isFarBelow(completionsOf(one), completionsOf(before))) return []
    const text = `app ${one.appId}: ${one.paid} of ${one.begun} payments by ${one.method} were completed in the last hours, usually ${percentOf(before)} %. Open a checkout and try it; billing-cli doctor`
    return [{ kind: 'method_failing', subject: keyOf(one), text, since: from }]
  })
}

function keyOf({ appId, method }: MethodAttempts): string {
  return `app ${appId} ${method}`
}

function completionsOf({ begun, paid }: MethodAttempts): Completions {
  return { begun, paid: Number(paid) }
}

function percentOf({ begun, paid }: MethodAttempts): number {
  return Math.round((Number(paid) / begun) * 100)
}
