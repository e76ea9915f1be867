import { CONTRACTING, EXPANDING, runMigrations } from '#db/migrate.ts'
import { verifyLedger, type LedgerReport } from '#ledger/verify-ledger.ts'
import type { StoredBackup } from './backup-folder.ts'
import type { ReadOptions } from './replay.ts'
import { withCopy, type Tools } from './verify-backup.ts'

export interface Rehearsed {
  /** What an upgrade would apply, in order, and how long each took. */
  readonly migrations: readonly { readonly name: string; readonly seconds: number }[]
  readonly ledger: LedgerReport
  readonly ok: boolean
}

/** Runs the migrations of this version on a private copy of a backup, and verifies the ledger there. Throws `UnreadableBackup`. */
export async function rehearseUpgrade(tools: Tools, backup: StoredBackup, options: ReadOptions): Promise<Rehearsed> {
  return withCopy(tools, backup, options, async ({ db }, { rowsEqual, sumsEqual }) => {
    const migrations: { name: string; seconds: number }[] = []
    const onApplied = (name: string, ms: number): void => {
      options.onStep(`applied ${name}`)
      migrations.push({ name, seconds: Math.round(ms / 10) / 100 })
    }
    for (const step of [EXPANDING, CONTRACTING]) await runMigrations(db, step, onApplied)
    options.onStep('verifying the ledger of the copy')
    const ledger = await verifyLedger({ ...tools, db }, null)
    return { migrations, ledger, ok: rowsEqual && sumsEqual && ledger.faults.length === 0 }
  })
}
