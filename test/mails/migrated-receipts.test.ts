import { expect } from 'chai'
import { describe, it } from 'mocha'
import { ReceiptClaims1795200000046 } from '#migrations/1795200000046-receipt-claims.ts'
import { openMigrator } from '#db/typeorm.ts'
import { UNTRIED } from '#mail/mail-columns.ts'
import { mailState } from '#mails/claims/store.ts'
import { addMs, MINUTE_MS } from '#shared/time.ts'
import { receipts } from '#transactions/receipts/store.ts'
import { testContext } from '../support/context.ts'

describe('receipts that an older daemon was sending', () => {
  it('are unconfirmed three minutes after it handed them over, and due at the end of its lease if it had not', async () => {
    const ctx = testContext()
    const leaseEnd = ctx.clock.now()
    const leased = async (transactionId: number, status: string) => {
      const row = { appId: 1, transactionId, kind: 'received', amount: 1, total: 1, createdAt: leaseEnd } as const
      await ctx.db.insert(receipts, { ...UNTRIED, ...row, status: status as 'due', retryAt: leaseEnd })
    }
    await leased(1, 'handed_over')
    await leased(2, 'due')
    for (let time = 0; time < 2; time += 1) {
      const { runner, close } = await openMigrator(ctx.db.targets, [])
      await new ReceiptClaims1795200000046().up(runner).finally(close)
      const [handedOver, due] = await ctx.db.all(receipts, 'ORDER BY id')
      expect(handedOver).to.deep.include({ status: 'claimed', handedOverAt: addMs(leaseEnd, -2 * MINUTE_MS) })
      expect(mailState(handedOver!, addMs(leaseEnd, MINUTE_MS - 1))).to.equal('claimed')
      expect(mailState(handedOver!, addMs(leaseEnd, MINUTE_MS))).to.equal('unconfirmed')
      expect(due).to.deep.include({ status: 'due', retryAt: leaseEnd, claimedAt: null, handedOverAt: null })
    }
  })
})
