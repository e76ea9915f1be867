import type { AlertCondition } from '#alerts/kinds.ts'
import { findChore } from '#alerts/store.ts'
import { LEDGER_CHORE } from '#alerts/verify-nightly.ts'
import type { LedgerReport } from '#ledger/verify-ledger.ts'
import type { Context } from '#context.ts'

/** What the last verification of the ledger found, by subject. */
export async function ledgerFault({ db }: Context): Promise<AlertCondition[]> {
  const chore = await findChore(db, LEDGER_CHORE)
  const result = chore?.result as LedgerReport | null | undefined
  if (!chore || !result) return []
  return result.faults.map(({ subject, fault }) => ({
    kind: 'ledger_fault',
    subject,
    text: `the ledger does not add up: ${subject} ${fault}. billing-cli ledger verify lists all; compare with your last backup before changing anything`,
    since: chore.begunAt,
  }))
}
