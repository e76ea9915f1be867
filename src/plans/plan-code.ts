import type { ReadOnly } from '#db/transaction.ts'
import { findPlanCode } from './store.ts'

/** Codes never change, so that one read of each is enough for as long as the database is open. */
const codesOf = new WeakMap<object, Map<number, string>>()
const MOST = 100_000

/** The code of a plan that is known to be there; the hottest call of the API asks for nothing else of it. */
export async function planCode(db: ReadOnly, planId: number): Promise<string> {
  const codes = knownCodes(db.manager.dataSource)
  const known = codes.get(planId)
  if (known !== undefined) return known
  const code = await findPlanCode(db, planId)
  if (code === null) throw new Error(`plan ${planId} is not there`)
  if (codes.size >= MOST) codes.clear()
  codes.set(planId, code)
  return code
}

function knownCodes(database: object): Map<number, string> {
  const known = codesOf.get(database) ?? new Map<number, string>()
  codesOf.set(database, known)
  return known
}
