import { expect } from 'chai'
import type { Context } from '#context.ts'
import { verifyLedger } from '#ledger/verify-ledger.ts'

/** Throws when the ledger has discrepancies. Returns how many subscriptions were checked. */
export async function requireCleanLedger(ctx: Context, when: string): Promise<number> {
  const { checked, faults } = await verifyLedger(ctx, null)
  if (faults.length > 0) throw new Error(`${when}, the ledger has discrepancies: ${JSON.stringify(faults)}`)
  return checked
}

/** Stops the service of a test, and expects its ledger to be clean. */
export async function stopWithCleanLedger(service: { readonly ctx: Context; stop(): Promise<void> }): Promise<void> {
  const { faults } = await verifyLedger(service.ctx, null)
  await service.stop()
  expect(faults, 'the ledger').to.deep.equal([])
}
