import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import { verifyLedger, type LedgerReport } from '#ledger/verify-ledger.ts'
import { CORRUPTIONS, HARMLESS, type Harmless } from './corruptions.ts'
import { aHistory, type History } from './history.ts'

/** Ends a transaction without keeping its changes. */
class TakenBack extends Error {}

describe('ledger verify finds what no command writes', () => {
  let history: History
  let untouched: LedgerReport
  const found = new Map<Harmless, LedgerReport[]>()

  // The database is emptied after each test: everything is looked at before the first.
  before(async () => {
    history = await aHistory()
    untouched = await verifyLedger(history.ctx, null)
    for (const change of [...CORRUPTIONS, ...HARMLESS]) found.set(change, await verifyWith(change))
  })
  after(() => history.stop())

  const verifyWith = async (change: Harmless): Promise<LedgerReport[]> => {
    const reports: LedgerReport[] = []
    const work = async (tx: Tx): Promise<void> => {
      for (const sql of change.sql(history)) {
        if ((await tx.run(sql)) === 0) throw new Error(`${change.title}: changes no row`)
      }
      reports.push(await verifyLedger({ ...history.ctx, db: { ...history.ctx.db, ...tx } }, null))
      throw new TakenBack()
    }
    await inTransaction(history.ctx, work).catch((error: unknown) => {
      if (!(error instanceof TakenBack)) throw error
    })
    return reports
  }
  const kindsOf = (report: LedgerReport | undefined): string[] =>
    [
      ...new Set(
        (report?.faults ?? []).map(
          ({ subject, fault }) => `${subject.replace(/ \d+$/, '')} ${fault.replaceAll(/on price \d+/g, 'on price N')}`,
        ),
      ),
    ].sort()

  it('nothing, in a history of everything that moves money, periods and queues', () => {
    expect(untouched).to.deep.equal({ checked: 10, faults: [] })
  })

  for (const corruption of CORRUPTIONS)
    it(corruption.title, () => {
      expect(kindsOf(found.get(corruption)?.[0])).to.deep.equal([...corruption.finds].sort())
    })

  describe('and no fault in', () => {
    for (const change of HARMLESS)
      it(change.title, () => {
        expect(kindsOf(found.get(change)?.[0])).to.deep.equal([])
      })
  })
})
