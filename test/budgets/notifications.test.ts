import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { chooseMethod } from '#checkout/choose-method.ts'
import { openBankPage } from '#checkout/open-bank-page.ts'
import { getTransaction } from '#transactions/store.ts'
import { aBankShop, transferFor } from '../bank-mail/bank-shop.ts'
import { startCardShop } from '../providers/card-shop.ts'
import { startPayosShop } from '../providers/payos-shop.ts'
import type { TestService } from '../support/api.ts'
import { genuineMail, type MailBank } from '../support/bank-mails.ts'
import { aCheckout, aPlan, priceId, tokenOf } from '../support/factories.ts'
import { until } from '../support/until.ts'
import { countStatements, type Counted } from './counted.ts'

/** Each starts a subscription. What begins it and COMMIT count, and what is done after the answer. */
describe('statement budgets of notifications', () => {
  const stops: (() => Promise<void>)[] = []
  afterEach(async () => {
    for (const stop of stops.splice(0).reverse()) await stop()
  })

  const count = async (service: TestService): Promise<Counted> => {
    const counted = await countStatements(service.ctx)
    stops.push(() => counted.close())
    // What a connection is set up with is asked once.
    await service.call('GET', '/readyz')
    return counted
  }

  it('a card event takes 15', async () => {
    const shop = await startCardShop()
    stops.push(() => shop.stop())
    const plan = await aPlan(shop.service.ctx, shop.first.app)
    const opened = await shop.open(shop.first, { mode: 'subscription', price_id: priceId(plan) })
    shop.stripe.pay(opened.session)
    const counted = await count(shop.service)
    const answer = await counted.atMost(15, () => shop.notify(shop.event(opened.session)))
    expect(answer.body).to.deep.equal({ success: true, data: { status: 'processed' } })
  })

  it('a PayOS notification takes 17: PayOS is asked, and what was booked of its link is read under the lock', async () => {
    const shop = await startPayosShop()
    stops.push(() => shop.stop())
    const plan = await aPlan(shop.service.ctx, shop.app)
    const { link } = await shop.open({ mode: 'subscription', price_id: priceId(plan) })
    const transfer = shop.payos.transfer(link, link.amount)
    const counted = await count(shop.service)
    const answer = await counted.atMost(17, () => shop.notify(link, transfer))
    expect(answer.body).to.deep.equal({ success: true, data: { status: 'processed' } })
  })

  for (const [bank, what] of [
    ['ACB', 'that names the account'],
    ['TIMO', 'to the mailbox of the account'],
  ] satisfies [MailBank, string][]) {
    it(`a bank mail ${what} takes 15, the look for sessions to close among them`, async () => {
      const shop = await aBankShop(bank)
      stops.push(() => shop.service.stop())
      const { ctx } = shop.service
      const plan = await aPlan(ctx, shop.app)
      const checkout = await aCheckout(ctx, shop.app, { mode: 'subscription', price_id: priceId(plan) })
      await chooseMethod(ctx, tokenOf(checkout), 'bank_transfer')
      await openBankPage(ctx, tokenOf(checkout))
      const payment = await getTransaction(ctx.db, checkout.transaction_id!)
      const mail = await genuineMail(bank, transferFor(payment))
      const counted = await count(shop.service)
      const answer = await counted.atMost(15, async () => {
        const decided = await shop.relay(mail)
        await until(() => counted.seen.some((statement) => statement.includes('FROM provider_sessions')))
        return decided
      })
      expect(answer.body).to.deep.equal({ status: 'processed' })
    })
  }
})
