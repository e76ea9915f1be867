import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { inTransaction } from '#commands/transaction.ts'
import { databasePresent } from '#db/database-now.ts'
import { listDeadClaims, markHandedOver, releaseBeforeHandOver } from '#mails/claims/store.ts'
import type { Scene } from '../renewals/scene.ts'
import { triedAt } from '../support/tried-at.ts'
import { until } from '../support/until.ts'
import { dueMails, KINDS, settled, unconfirmedIds } from './kinds.ts'

for (const kind of KINDS)
  describe(`mails of one queue: ${kind.noun}s`, () => {
    let scene: Scene
    afterEach(() => scene.stop())

    const open = async (...due: [mails: number, emailOf?: (number: number) => string]) => {
      scene = await dueMails(kind, ...due)
      return scene
    }
    const sweep = () => kind.sweep(scene.ctx)
    /** So many mails that the server has not answered. */
    const openUnanswered = async (mails: number) => {
      await open(mails)
      scene.inbox.behaviour = 'lose-answer'
      await sweep()
      scene.inbox.behaviour = 'accept'
      scene.ctx.clock.advance('3m')
      return scene
    }
    const failures = async () => {
      return (await scene.ctx.db.one(kind.table, ''))?.failures ?? 0
    }
    const counted = async () => (await scene.counted()).map(([, mails]) => mails)

    it('four daemons that sweep at the same moment send each mail once', async () => {
      const { inbox } = await open(20)
      await Promise.all([sweep(), sweep(), sweep(), sweep()])
      expect(inbox.mails).to.have.lengthOf(20)
      expect(new Set(inbox.messageIds).size).to.equal(20)
    })

    it('several are sent at once, each over a connection of its own', async () => {
      const { inbox } = await open(5)
      inbox.beforeAnswer = () => until(() => inbox.messagesSeen === 5)
      await sweep()
      expect(inbox.mails).to.have.lengthOf(5)
    })

    for (const [behaviour, pause] of [
      ['refuse-data', '1m'],
      ['drop-early', kind.unreachable],
    ] as const)
      it(`one that the server did not accept ("${behaviour}") is sent by a later sweep, once`, async () => {
        const { inbox, ctx } = await open(1)
        inbox.behaviour = behaviour
        await sweep()
        inbox.behaviour = 'accept'
        expect(inbox.mails).to.have.lengthOf(0)
        ctx.clock.advance(pause)
        await sweep()
        await sweep()
        expect(inbox.mails).to.have.lengthOf(1)
      })

    it('a mail that the server refuses waits longer each time, up to an hour', async () => {
      const { inbox, ctx } = await open(1)
      inbox.behaviour = 'refuse-data'
      const tries = [0, 1, 3, 7, 15, 31, 63, 123, 183]
      const isTried = async () => {
        const before = await failures()
        await sweep()
        return (await failures()) > before
      }
      expect(await triedAt(ctx.clock, tries, 1, isTried)).to.deep.equal(tries)
    })

    it('one that did not leave is not counted towards the daily limit', async () => {
      const { inbox, ctx } = await open(1)
      for (const behaviour of ['refuse-data', 'drop-early', 'refuse-recipient'] as const) {
        inbox.behaviour = behaviour
        await sweep()
        expect(await counted(), behaviour).to.deep.equal([])
        ctx.clock.advance('1h')
      }
    })

    it('mails at which the server hangs up do not hold up those of other customers', async () => {
      const emailOf = (number: number) => `to-${number}@example.com`
      const { inbox, ctx } = await open(16, emailOf)
      for (let number = 1; number <= 6; number += 1) inbox.hangsUpAt.add(emailOf(number))
      await sweep()
      await sweep()
      expect(inbox.mails).to.have.lengthOf(10)
      inbox.hangsUpAt.clear()
      ctx.clock.advance(kind.unreachable)
      await sweep()
      expect(inbox.mails).to.have.lengthOf(16)
    })

    for (const behaviour of ['drop-late', 'lose-answer'] as const)
      it(`those that the server may have accepted ("${behaviour}") are counted and never sent again, and operators page through them, the newest first`, async () => {
        const { inbox, ctx } = await open(3)
        inbox.behaviour = behaviour
        await sweep()
        inbox.behaviour = 'accept'
        expect(await unconfirmedIds(kind, ctx), 'they may still be on their way').to.deep.equal([])
        ctx.clock.advance('3m')
        await sweep()
        expect(inbox.messagesSeen).to.equal(3)
        expect(await counted()).to.deep.equal([3])
        const ids = await unconfirmedIds(kind, ctx, '2')
        expect(ids).to.have.lengthOf(3)
        expect(ids).to.deep.equal(ids.toSorted((a, b) => b - a))
        expect(await kind.unconfirmed.count(ctx)).to.equal(3)
        const [shown] = (await kind.unconfirmed.page(ctx)).rows
        expect(shown).to.deep.include({ app_id: scene.seller.app.id, external_ref: 'user-3', ...kind.shown })
        const [found] = await kind.check(ctx)
        expect(found!.detail)
          .to.match(/^3 \w+ may or may not have been sent/)
          .and.to.include(`newest ${kind.noun} ${ids[0]} `)
      })

    it('an operator settles those that are unconfirmed, once: what was not sent is sent by the next sweep', async () => {
      const { inbox, ctx } = await openUnanswered(3)
      const [sent, notSent, other] = await unconfirmedIds(kind, ctx)
      expect(await settled(kind, ctx, sent!, 'sent')).to.equal('settled')
      expect(await settled(kind, ctx, notSent!, 'not_sent')).to.equal('settled')
      expect(await settled(kind, ctx, notSent!, 'sent')).to.equal('refused')
      await sweep()
      expect(inbox.mails).to.have.lengthOf(4)
      expect(new Set(inbox.messageIds).size).to.equal(3)
      expect(await unconfirmedIds(kind, ctx)).to.deep.equal([other])
    })

    it('those that several operators settle at once are settled by one of them, and the others are refused', async () => {
      const { ctx } = await openUnanswered(4)
      const ids = await unconfirmedIds(kind, ctx)
      const answers = await Promise.all(
        (['sent', 'not_sent', 'sent'] as const).flatMap((outcome) =>
          ids.map(async (id) => ({ id, outcome, answer: await settled(kind, ctx, id, outcome) })),
        ),
      )
      const done = answers.filter(({ answer }) => answer === 'settled')
      expect(done.map(({ id }) => id))
        .to.have.members(ids)
        .and.to.have.lengthOf(4)
      const sent = done.filter(({ outcome }) => outcome === 'sent').length
      expect(await counted(), 'by what the first said of each').to.deep.equal(sent === 0 ? [] : [sent])
    })

    it('one that left late may be settled three minutes after it left, no earlier', async () => {
      const { inbox, ctx } = await open(1)
      inbox.behaviour = 'lose-answer'
      inbox.beforeGoAhead = () => {
        ctx.clock.advance('50s')
        return Promise.resolve()
      }
      await sweep()
      ctx.clock.advance('179s')
      expect(await unconfirmedIds(kind, ctx)).to.deep.equal([])
      const mail = (await ctx.db.one(kind.table, ''))!
      expect(await settled(kind, ctx, mail.id, 'sent')).to.equal('refused')
      ctx.clock.advance('1s')
      expect(await unconfirmedIds(kind, ctx)).to.have.lengthOf(1)
    })

    it('a sweep so slow that another takes it for dead sends no mail whose claim the other has released, which sends it instead', async () => {
      const { ctx, inbox } = await open(1)
      inbox.beforeGoAhead = async () => {
        inbox.beforeGoAhead = null
        ctx.clock.advance('61s')
        await sweep()
      }
      await sweep()
      expect(inbox.mails).to.have.lengthOf(1)
      expect((await ctx.db.one(kind.table, ''))!.status).to.equal('sent')
    })

    it('a sweep so slow that another has claimed its mail meanwhile leaves it to that one', async () => {
      const { ctx, inbox } = await open(1)
      inbox.beforeGoAhead = async () => {
        ctx.clock.advance('61s')
        await ctx.db.update(kind.table, { status: 'claimed' }, { claimedAt: ctx.clock.now() })
      }
      await sweep()
      expect(inbox.mails).to.have.lengthOf(0)
    })

    it('a sweep keeps a mail that it hands over after another sweep took its claim for dead', async () => {
      const { ctx, inbox } = await open(1)
      const asked = Promise.withResolvers<null>()
      const answer = Promise.withResolvers<null>()
      inbox.beforeGoAhead = async () => {
        asked.resolve(null)
        await answer.promise
      }
      const sweeping = sweep()
      await asked.promise
      expect(await ctx.db.count(kind.table, "WHERE status = 'claimed'")).to.equal(1)
      ctx.clock.advance('61s')
      const [claim] = await listDeadClaims(ctx.db, kind.table, ctx.clock.now(), 1)
      expect(await markHandedOver(ctx.db, claim!, databasePresent(ctx), null)).to.equal(true)
      await inTransaction(ctx, (tx) => releaseBeforeHandOver(tx, claim!, { status: 'failed' }))
      expect(await ctx.db.one(kind.table, '')).to.deep.include({ status: 'claimed', claimedAt: claim!.claimedAt })
      answer.resolve(null)
      await sweeping
    })
  })
