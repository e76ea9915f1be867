import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { DAY_MS, HOUR_MS, addMs, asRealTime, type RealTime } from '#shared/time.ts'
import { verifyLedger, type LedgerReport } from '#ledger/verify-ledger.ts'
import { beginChore, findChore, finishChore, type AlertChore } from './store.ts'

export const LEDGER_CHORE = 'ledger'
/** 2 a.m. in Vietnam. */
const NIGHT_UTC_MS = 19 * HOUR_MS
/** After an error, the ledger is verified again each hour, so that the fix is reported soon. */
const AGAIN_MS = HOUR_MS
/** Maximum number of subjects that are named; a broken disk breaks more than anybody would read. */
const MAX_FAULTS = 20

/**
 * Verifies the whole ledger once a night, by one of the daemons; after each step it waits for `between`, so that payments are not held up.
 * Returns whether it did.
 */
export async function verifyNightly(ctx: Context, between: () => Promise<void>): Promise<boolean> {
  const now = await databaseNow(ctx, ctx.db)
  const last = await findChore(ctx.db, LEDGER_CHORE)
  if (!isDue(last, now) || !(await beginChore(ctx.db, LEDGER_CHORE, last, now))) return false
  const { checked, faults } = await verifyLedger(ctx, null, between)
  const bySubject = new Map(faults.map((fault) => [fault.subject, fault]))
  // One error for each subject.
  const result: LedgerReport = { checked, faults: [...bySubject.values()].slice(0, MAX_FAULTS) }
  await finishChore(ctx.db, LEDGER_CHORE, result)
  return true
}

function isDue(last: AlertChore | null, now: RealTime): boolean {
  if (!last) return true
  const hasFaults = ((last.result as LedgerReport | null)?.faults ?? []).length > 0
  return last.begunAt < (hasFaults ? addMs(now, -AGAIN_MS) : lastNight(now))
}

function lastNight(now: RealTime): RealTime {
  const days = Math.floor((now.getTime() - NIGHT_UTC_MS) / DAY_MS)
  return asRealTime(new Date(days * DAY_MS + NIGHT_UTC_MS))
}
