import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { inTransaction } from '#commands/transaction.ts'
import { databasePresent } from '#db/database-now.ts'
import { listDeadClaims, markHandedOver, releaseBeforeHandOver } from '#mails/claims/store.ts'
import type { Scene } from '../renewals/scene.ts'
import { until } from '../support/until.ts'
import { dueMails, KINDS } from './kinds.ts'

for (const kind of KINDS)
  describe(`a sweep so slow that another one takes it for dead: ${kind.noun}s`, () => {
    let scene: Scene
    afterEach(() => scene.stop())

    it('sends no mail whose claim the other has released, which sends it instead', async () => {
      scene = await dueMails(kind, 1)
      const { ctx, inbox } = scene
      inbox.beforeGoAhead = async () => {
        inbox.beforeGoAhead = null
        ctx.clock.advance('61s')
        await kind.sweep(ctx)
      }
      await kind.sweep(ctx)
      expect(inbox.mails).to.have.lengthOf(1)
      expect((await ctx.db.one(kind.table, ''))!.status).to.equal('sent')
    })

    it('keeps a mail that it hands over between the look of the other and its release', async () => {
      scene = await dueMails(kind, 1)
      const { ctx, inbox } = scene
      let answer = (): void => undefined
      inbox.beforeGoAhead = () => new Promise<void>((resolve) => (answer = resolve))
      const sweeping = kind.sweep(ctx)
      await until(async () => (await ctx.db.count(kind.table, "WHERE status = 'claimed'")) === 1)
      ctx.clock.advance('61s')
      const [claim] = await listDeadClaims(ctx.db, kind.table, ctx.clock.now(), 1)
      expect(await markHandedOver(ctx.db, kind.table, claim!, databasePresent(ctx), null)).to.equal(true)
      await inTransaction(ctx, (tx) => releaseBeforeHandOver(tx, kind.table, claim!, { status: 'failed' }))
      expect(await ctx.db.one(kind.table, '')).to.deep.include({ status: 'claimed', claimedAt: claim!.claimedAt })
      answer()
      await sweeping
    })
  })
