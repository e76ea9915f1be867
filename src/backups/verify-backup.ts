import type { Context } from '#context.ts'
import { CONTRACTING, EXPANDING, runMigrations } from '#db/migrate.ts'
import { verifyLedger, type LedgerReport } from '#ledger/verify-ledger.ts'
import { recordVerified, removeVerification, type StoredBackup } from './backup-folder.ts'
import { compareContents, type Comparison } from './compare-contents.ts'
import { withPrivateDatabase, type PrivateDatabase } from './private-copy.ts'
import { load, readableBackup, UnreadableBackup, type ReadOptions } from './replay.ts'
import { asRestorer, moneyColumnsOf, readContents } from './store.ts'

/** The context of a command that needs no configured database. */
export type Tools = Omit<Context, 'db'>

export interface Verified extends Comparison {
  readonly ledger: LedgerReport
  readonly ok: boolean
  readonly seconds: number
}

/**
 * Restores the backup into a private server, counts and adds up again, runs the migrations, and verifies the ledger. Records beside the
 * backup that it is good, or removes that record. Throws `UnreadableBackup`.
 */
export async function verifyBackup(tools: Tools, backup: StoredBackup, options: ReadOptions): Promise<Verified> {
  const began = performance.now()
  try {
    const checked = await withCopy(tools, backup, options, (copy, comparison) =>
      check(tools, copy, comparison, options),
    )
    if (checked.ok) await recordVerified(backup, tools.clock.now())
    else await removeVerification(backup)
    return { ...checked, seconds: Math.round((performance.now() - began) / 100) / 10 }
  } catch (error) {
    if (error instanceof UnreadableBackup && error.isDamaged) await removeVerification(backup)
    throw error
  }
}

/** Runs the work on a private copy of the database in a backup, as it was when the backup was taken. */
export async function withCopy<T>(
  { config, clock }: Tools,
  backup: StoredBackup,
  options: ReadOptions,
  work: (copy: PrivateDatabase, comparison: Comparison) => Promise<T>,
): Promise<T> {
  const { family } = backup
  const { onStep } = options
  onStep('starting a private database server')
  return withPrivateDatabase({ home: config.home, family, now: clock.now() }, async (copy) => {
    const manifest = await asRestorer(copy.db, copy.target, (restorer) =>
      load(readableBackup(backup, 'restoring', options), family, restorer),
    )
    onStep('comparing rows and sums')
    return work(copy, compareContents(manifest, await readContents(copy.db, moneyColumnsOf(manifest))))
  })
}

async function check(
  tools: Tools,
  { db }: PrivateDatabase,
  comparison: Comparison,
  { onStep }: ReadOptions,
): Promise<Omit<Verified, 'seconds'>> {
  onStep('running the migrations on the copy')
  for (const step of [EXPANDING, CONTRACTING]) await runMigrations(db, step)
  onStep('verifying the ledger of the copy')
  const ledger = await verifyLedger({ ...tools, db }, null)
  const ok = comparison.rowsEqual && comparison.sumsEqual && ledger.faults.length === 0
  return { ...comparison, ledger, ok }
}
