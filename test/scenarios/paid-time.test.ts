import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { resolveTransaction } from '#decisions/resolve-transaction.ts'
import { endSubscription } from '#subscriptions/end-subscription.ts'
import { openCli } from '../cli/run-cli.ts'
import { startBankScenario } from '../pages/bank-scenario.ts'
import { textOf } from '../pages/read-page.ts'
import type { Transaction } from '../../client/src/types.ts'
import { stopWithCleanLedger } from '../support/clean-ledger.ts'
import { aPlan, FREE_TRIAL, LIFETIME, MONTHLY, PAID_TRIAL, priceId, YEARLY } from '../support/factories.ts'
import { newEventTypes, type Scenario } from '../support/scenario.ts'

const JSON_TYPE = { 'Content-Type': 'application/json' }
const URLS = { success_url: 'https://shop.example/ok', cancel_url: 'https://shop.example/no' }
const RENEWED = ['subscription.renewed', 'subscription.updated']

describe('quotes and decisions', () => {
  let scenario: Scenario
  beforeEach(async () => {
    scenario = await startBankScenario()
  })
  afterEach(() => stopWithCleanLedger(scenario.service))

  type Opened = Awaited<ReturnType<Scenario['checkout']>>
  const open = (price: string | undefined, body: object = {}): Promise<Opened> =>
    scenario.checkout({ price_id: price, ...body })
  const buy = async (price: string | undefined, body: object = {}): Promise<Opened> => {
    const checkout = await open(price, body)
    await scenario.pay(checkout)
    return checkout
  }
  const switchTo = async (price: string | undefined): Promise<void> => {
    expect((await scenario.seller.put('/api/v1/subscriptions/user-1/plan', { price_id: price })).status).to.equal(200)
  }
  /** The payer opens the renewal link and chooses the bank transfer; returns the transaction. */
  const renew = async (): Promise<Transaction> => {
    const raw = JSON.stringify({ payment_method: 'bank_transfer' })
    const path = `/renew/${await scenario.renewalToken()}`
    const answer = await scenario.service.call('POST', path, { headers: JSON_TYPE, raw })
    expect(answer.status, answer.text).to.equal(200)
    return (await scenario.seller.get('/api/v1/transactions?external_ref=user-1')).body.data[0]!
  }
  const flagOf = async ({ transaction_id: id }: Pick<Transaction, 'transaction_id'>): Promise<unknown[]> => {
    const { status, flag_reason: reason } = await scenario.transaction(id)
    return [status, reason]
  }
  const standing = async (): Promise<unknown[]> => {
    const { price_id: price, current_period_end: end } = await scenario.subscription()
    return [price, end]
  }
  const page = (url: string, language = 'en') =>
    scenario.service.call('GET', url, { headers: { Accept: 'text/html', 'Accept-Language': language } })

  describe('paid time is never silently shortened', () => {
    it('a monthly payment whose notification was lost, paid before a year of another plan was bought, does not change the year: superseded', async () => {
      const month = await scenario.plan('basic', MONTHLY)
      const year = await scenario.plan('gold', YEARLY)
      const lost = await open(month.prices[0])
      scenario.at('2026-03-01 10:05:00')
      await buy(year.prices[0])
      await scenario.newEvents()
      scenario.at('2026-03-01 10:15:00')
      await scenario.reportTransfer(lost, '2026-03-01 10:00:00')
      expect(await flagOf(lost)).to.deep.equal(['completed', 'superseded'])
      expect(await standing()).to.deep.equal([year.prices[0], '2027-03-01 10:05:00'])
      expect(await newEventTypes(scenario)).to.deep.equal([])
      const listed = (await scenario.seller.get('/api/v1/transactions?flagged=true')).body.data
      expect(listed).to.have.length(1)
      expect(listed[0]).to.include({ flagged: true, flag_reason: 'superseded', amount_received: MONTHLY.amount })
    })

    it('a change opened and paid after the latest plan choice applies: a new period, no proration', async () => {
      const year = await scenario.plan('gold', YEARLY)
      const month = await scenario.plan('basic', MONTHLY)
      await buy(year.prices[0])
      scenario.at('2026-03-01 10:05:00')
      await buy(month.prices[0])
      expect(await standing()).to.deep.equal([month.prices[0], '2026-04-01 10:05:00'])
    })

    it('of two purchases paid within a minute the one opened later wins, in whatever order they are reported', async () => {
      const plans = [await scenario.plan('basic', MONTHLY), await scenario.plan('gold', YEARLY)] as const
      for (const [ref, order] of [
        ['forth', [0, 1]],
        ['back', [1, 0]],
      ] as const) {
        scenario.at('2026-03-01 10:00:00')
        const first = await open(plans[0].prices[0], { external_ref: ref })
        scenario.at('2026-03-01 10:01:00')
        const second = await open(plans[1].prices[0], { external_ref: ref })
        scenario.at('2026-03-01 10:10:00')
        const paid = [
          () => scenario.reportTransfer(first, '2026-03-01 10:05:50'),
          () => scenario.reportTransfer(second, '2026-03-01 10:05:00'),
        ]
        for (const index of order) await paid[index]?.()
        expect((await scenario.subscription(ref)).price_id, ref).to.equal(plans[1].prices[0])
      }
    })

    it('a payment opened before a plan switch, for a third plan, is superseded by the switch', async () => {
      const [basic, gold, pro] = [
        await scenario.plan('basic', YEARLY),
        await scenario.plan('gold', MONTHLY),
        await scenario.plan('pro', MONTHLY),
      ]
      await buy(basic.prices[0])
      const late = await open(pro.prices[0])
      scenario.at('2026-03-02 10:00:00')
      await switchTo(gold.prices[0])
      scenario.at('2026-03-03 10:00:00')
      await scenario.reportTransfer(late)
      expect(await flagOf(late)).to.deep.equal(['completed', 'superseded'])
      expect(await standing()).to.deep.equal([gold.prices[0], '2027-03-01 10:00:00'])
    })

    it('a payment for another plan, opened in the second of a free trial and before it, is superseded by the trial', async () => {
      const month = await scenario.plan('basic', MONTHLY)
      const trial = await scenario.plan('gold', { ...YEARLY, trial: FREE_TRIAL })
      scenario.service.ctx.clock.advanceMs(300)
      const late = await open(month.prices[0])
      scenario.service.ctx.clock.advanceMs(300)
      expect((await open(trial.prices[0])).activated).to.equal(true)
      scenario.at('2026-03-01 10:05:00')
      await scenario.reportTransfer(late)
      expect(await flagOf(late)).to.deep.equal(['completed', 'superseded'])
      expect(await standing()).to.deep.equal([trial.prices[0], '2026-03-08 10:00:00'])
    })

    it('a renewal opened before a plan switch extends by the interval sold, and the switch stays', async () => {
      scenario.at('2026-01-31 10:00:00')
      const basic = await scenario.plan('basic', YEARLY)
      const gold = await scenario.plan('gold', MONTHLY)
      await buy(basic.prices[0])
      scenario.at('2026-11-30 10:00:00')
      const renewal = await renew()
      await switchTo(gold.prices[0])
      await scenario.newEvents()
      await scenario.reportTransfer(renewal)
      expect(await flagOf(renewal)).to.deep.equal(['completed', null])
      expect(await standing()).to.deep.equal([gold.prices[0], '2028-01-31 10:00:00'])
      expect(await newEventTypes(scenario)).to.deep.equal(RENEWED)
    })

    for (const order of ['the renewal first', 'the switch first'])
      it(`an older monthly renewal does not undo a switch to yearly: ${order}`, async () => {
        scenario.at('2026-01-31 10:00:00')
        const plan = await scenario.plan('basic', MONTHLY, YEARLY)
        await buy(plan.prices[0])
        scenario.at('2026-02-27 10:00:00')
        const renewal = await renew()
        if (order === 'the renewal first') await scenario.reportTransfer(renewal)
        await switchTo(plan.prices[1])
        if (order === 'the switch first') await scenario.reportTransfer(renewal)
        expect(await standing()).to.deep.equal([plan.prices[1], '2026-03-31 10:00:00'])
      })

    for (const order of ['the renewal first', 'the checkout first'])
      it(`a checkout for another price of the plan sets it, and a renewal opened meanwhile does not undo that: ${order}`, async () => {
        const plan = await scenario.plan('basic', MONTHLY, YEARLY)
        await buy(plan.prices[0])
        const yearly = await open(plan.prices[1])
        scenario.at('2026-03-20 10:00:00')
        const renewal = await renew()
        for (const payment of order === 'the renewal first' ? [renewal, yearly] : [yearly, renewal])
          await scenario.reportTransfer(payment)
        expect(await standing()).to.deep.equal([plan.prices[1], '2027-05-01 10:00:00'])
      })

    it('a renewal opened before another plan was bought is superseded', async () => {
      const month = await scenario.plan('basic', MONTHLY)
      const year = await scenario.plan('gold', YEARLY)
      await buy(month.prices[0])
      scenario.at('2026-03-30 10:00:00')
      const renewal = await renew()
      await buy(year.prices[0])
      await scenario.reportTransfer(renewal)
      expect(await flagOf(renewal)).to.deep.equal(['completed', 'superseded'])
      expect(await standing()).to.deep.equal([year.prices[0], '2027-03-30 10:00:00'])
    })

    it('a renewal opened before another plan was bought is superseded, also after a switch to another price of that plan', async () => {
      const basic = await scenario.plan('basic', MONTHLY)
      const gold = await scenario.plan('gold', MONTHLY, YEARLY)
      await buy(basic.prices[0])
      scenario.at('2026-03-30 10:00:00')
      const renewal = await renew()
      await buy(gold.prices[0])
      await switchTo(gold.prices[1])
      await scenario.reportTransfer(renewal)
      expect(await flagOf(renewal)).to.deep.equal(['completed', 'superseded'])
      expect(await standing()).to.deep.equal([gold.prices[1], '2026-04-30 10:00:00'])
    })

    it('a renewal paid after the end starts a period at payment time, on the plan and price chosen last', async () => {
      const month = await scenario.plan('basic', MONTHLY)
      const year = await scenario.plan('gold', YEARLY)
      await buy(month.prices[0])
      scenario.at('2026-03-30 10:00:00')
      const renewal = await renew()
      await switchTo(year.prices[0])
      scenario.at('2026-04-05 10:00:00')
      await scenario.reportTransfer(renewal)
      expect(await standing()).to.deep.equal([year.prices[0], '2026-05-05 10:00:00'])
    })

    it('a late extension does not set the latest plan choice back: a payment for another plan opened before the switch is superseded, and the month just paid stays', async () => {
      const [basic, gold, pro] = [
        await scenario.plan('basic', MONTHLY),
        await scenario.plan('gold', MONTHLY),
        await scenario.plan('pro', { ...MONTHLY, interval_unit: 'week' }),
      ]
      await buy(basic.prices[0])
      scenario.at('2026-03-02 10:00:00')
      const renewal = await renew()
      const week = await open(pro.prices[0])
      scenario.at('2026-03-03 10:00:00')
      await switchTo(gold.prices[0])
      scenario.at('2026-04-05 10:00:00')
      await scenario.reportTransfer(renewal)
      expect(await standing()).to.deep.equal([gold.prices[0], '2026-05-05 10:00:00'])
      scenario.at('2026-04-06 10:00:00')
      await scenario.reportTransfer(week)
      expect(await flagOf(week)).to.deep.equal(['completed', 'superseded'])
      expect(await standing()).to.deep.equal([gold.prices[0], '2026-05-05 10:00:00'])
    })

    it('a payment opened without a valid subscription, for the plan that was bought meanwhile, extends it', async () => {
      const plan = await scenario.plan('basic', MONTHLY, YEARLY)
      const early = await open(plan.prices[0])
      scenario.at('2026-03-01 10:05:00')
      await buy(plan.prices[1])
      await scenario.reportTransfer(early)
      expect(await flagOf(early)).to.deep.equal(['completed', null])
      expect(await standing()).to.deep.equal([plan.prices[1], '2027-04-01 10:05:00'])
    })

    for (const plan of ['another plan', 'the same plan'])
      it(`a paid trial that is paid while ${plan} is valid is superseded, and the trial is not used up`, async () => {
        const gold = await scenario.plan('gold', { ...MONTHLY, trial: PAID_TRIAL })
        const basic = await scenario.plan('basic', MONTHLY)
        const trial = await open(gold.prices[0])
        expect(trial.trial).to.not.equal(null)
        const held = plan === 'the same plan' ? gold.prices[0] : basic.prices[0]
        await buy(held, plan === 'the same plan' ? { skip_trial: true } : {})
        await scenario.reportTransfer(trial)
        expect(await flagOf(trial)).to.deep.equal(['completed', 'superseded'])
        expect(await standing()).to.deep.equal([held, '2026-04-01 10:00:00'])
        scenario.at('2026-05-01 10:00:00')
        expect((await open(gold.prices[0])).trial, 'granted once no subscription is valid').to.not.equal(null)
      })

    it('trial_already_used wins over superseded', async () => {
      const gold = await scenario.plan('gold', { ...MONTHLY, trial: PAID_TRIAL })
      const [first, second] = [await open(gold.prices[0]), await open(gold.prices[0])]
      await scenario.pay(first)
      await scenario.reportTransfer(second)
      expect(await flagOf(second)).to.deep.equal(['completed', 'trial_already_used'])
    })
  })

  describe('no page takes money that would not be applied', () => {
    const overtaken = async (): Promise<Opened> => {
      const month = await scenario.plan('basic', MONTHLY)
      const year = await scenario.plan('gold', YEARLY)
      const late = await open(month.prices[0])
      expect((await page(`${late.checkout_url}/bank`)).status).to.equal(200)
      scenario.at('2026-03-01 10:05:00')
      await buy(year.prices[0])
      return late
    }

    it('a checkout that would be superseded answers 410 on its pages and on resolve', async () => {
      const late = await overtaken()
      for (const rest of ['', '/bank', '/qr.svg'])
        expect((await page(`${late.checkout_url}${rest}`)).status, rest).to.equal(410)
      for (const method of ['test', 'bank_transfer', 'card']) {
        const raw = JSON.stringify({ payment_method: method })
        const answer = await scenario.service.call('POST', `${late.checkout_url}/resolve`, { headers: JSON_TYPE, raw })
        expect([answer.status, answer.body.error?.code], method).to.deep.equal([410, 'checkout_expired'])
      }
      const status = await scenario.service.call('GET', `${late.checkout_url}/status`)
      expect(status.body).to.deep.equal({ status: 'pending', expired: true, redirect_url: null })
      expect(await flagOf(late)).to.deep.equal(['pending', null])
    })

    it('its page says that the subscription has changed and links back to the app, in both languages', async () => {
      const late = await overtaken()
      const [en, vi] = [await page(late.checkout_url), await page(late.checkout_url, 'vi')]
      expect(textOf(en)).to.include('Your subscription has changed')
      expect(textOf(en)).to.include('Your money is safe. Reader will check the transfer and contact you.')
      expect(textOf(vi)).to.include('Gói đăng ký của bạn đã thay đổi')
      for (const { text } of [en, vi]) expect(text).to.include('href="https://shop.example/no"')
      const other = await open((await scenario.plan('pro', { ...MONTHLY, trial: PAID_TRIAL })).prices[0], {
        external_ref: 'user-2',
      })
      expect((await page(other.checkout_url)).status, 'other checkouts are not affected').to.equal(200)
    })

    it('a transfer from its bank page is still booked, and flagged', async () => {
      const late = await overtaken()
      await scenario.reportTransfer(late)
      expect(await flagOf(late)).to.deep.equal(['completed', 'superseded'])
      expect((await page(late.checkout_url)).status, 'a completed checkout redirects').to.equal(303)
    })

    it('a checkout whose trial was used meanwhile answers 410', async () => {
      const plan = await scenario.plan('pro', { ...MONTHLY, trial: PAID_TRIAL })
      const [first, second] = [await open(plan.prices[0]), await open(plan.prices[0])]
      await scenario.pay(first)
      scenario.at('2026-03-01 10:20:00')
      expect((await page(second.checkout_url)).status).to.equal(410)
      const raw = JSON.stringify({ payment_method: 'test' })
      const answer = await scenario.service.call('POST', `${second.checkout_url}/resolve`, { headers: JSON_TYPE, raw })
      expect([answer.status, answer.body.error.code]).to.deep.equal([410, 'checkout_expired'])
    })

    it('a checkout that extends shows its effect after a plan switch', async () => {
      const basic = await scenario.plan('basic', MONTHLY)
      const gold = await scenario.plan('gold', MONTHLY)
      await buy(basic.prices[0])
      const extension = await open(basic.prices[0])
      scenario.at('2026-03-01 10:05:00')
      await switchTo(gold.prices[0])
      expect(textOf(await page(extension.checkout_url))).to.include(
        'After payment: valid until 1 May 2026 (adds 1 month)',
      )
    })

    it('an extension names the plan that it extends, also after a plan switch: before the payment and after it', async () => {
      const basic = await scenario.plan('basic', MONTHLY)
      const gold = await aPlan(scenario.service.ctx, scenario.app, { code: 'gold', name: 'Gold' })
      await buy(basic.prices[0])
      const extension = await open(basic.prices[0])
      await switchTo(priceId(gold))
      const before = textOf(await page(extension.checkout_url))
      await scenario.pay(extension)
      const after = textOf(await page(`${extension.checkout_url}/paid`))
      for (const text of [before, after]) expect(text).to.include('Gold').and.not.include('Premium')
    })

    it('a renewal link always quotes again: after another plan was bought it sells that plan', async () => {
      const month = await scenario.plan('basic', MONTHLY)
      const year = await scenario.plan('gold', YEARLY)
      await buy(month.prices[0])
      scenario.at('2026-03-30 10:00:00')
      const before = await renew()
      await buy(year.prices[0])
      const after = await renew()
      expect(after.transaction_id).to.not.equal(before.transaction_id)
      expect(after).to.include({ price_id: year.prices[0], amount: YEARLY.amount })
      await scenario.reportTransfer(after)
      expect(await standing()).to.deep.equal([year.prices[0], '2028-03-30 10:00:00'])
    })
  })

  describe('completing a superseded payment applies it now', () => {
    const words = (id: number) => [
      ...['transaction', 'resolve', String(id), '--action', 'complete', '--note', 'agreed'],
    ]
    const resolve = (id: number) => openCli().json(words(id))
    const effectsOf = async (id: number) => (await openCli().preview(words(id))).effects.join()
    /** The CLI uses the machine's clock. */
    const useRealTime = (): void => scenario.service.ctx.clock.setToPresent()

    const flagged = async (late: Pick<Transaction, 'transaction_id'>): Promise<number> => {
      await scenario.reportTransfer(late)
      expect(await flagOf(late)).to.deep.equal(['completed', 'superseded'])
      return late.transaction_id
    }

    it('a purchase starts its plan now, and the dry run says so', async () => {
      useRealTime()
      const month = await scenario.plan('basic', MONTHLY)
      const year = await scenario.plan('gold', YEARLY)
      const late = await open(month.prices[0])
      scenario.service.ctx.clock.advance('1s')
      await buy(year.prices[0])
      const id = await flagged(late)
      const before = await standing()
      expect(await effectsOf(id)).to.include('starts a period of basic now')
      expect(await standing()).to.deep.equal(before)
      await resolve(id)
      expect(await flagOf(late)).to.deep.equal(['completed', null])
      const [price, end] = await standing()
      expect(price).to.equal(month.prices[0])
      expect(String(end) < String(before[1])).to.equal(true)
    })

    it('a purchase counts as opened now: a checkout for another plan, opened before it in the same second, is superseded', async () => {
      useRealTime()
      const { clock } = scenario.service.ctx
      const month = await scenario.plan('basic', MONTHLY)
      const [year, third] = [await scenario.plan('gold', YEARLY), await scenario.plan('pro', MONTHLY)]
      const late = await open(month.prices[0])
      clock.advance('1s')
      await buy(year.prices[0])
      const id = await flagged(late)
      clock.advance('5s')
      clock.advanceMs(300)
      const other = await open(third.prices[0])
      clock.advanceMs(300)
      await resolveTransaction(scenario.service.ctx, operator('mai'), {
        transactionId: id,
        action: 'complete',
        note: 'kept',
      })
      clock.advance('1s')
      await scenario.reportTransfer(other)
      expect(await flagOf(other)).to.deep.equal(['completed', 'superseded'])
    })

    it('an extension extends the present period, and the dry run says so', async () => {
      useRealTime()
      const month = await scenario.plan('basic', MONTHLY)
      const week = await scenario.plan('gold', { ...MONTHLY, interval_unit: 'week' })
      await buy(month.prices[0])
      const renewal = await renew()
      scenario.service.ctx.clock.advance('1s')
      await buy(week.prices[0])
      const id = await flagged(renewal)
      const before = await standing()
      expect(await effectsOf(id)).to.include('extends the current period')
      await resolve(id)
      const [price, end] = await standing()
      expect(price).to.equal(week.prices[0])
      expect(String(end) > String(before[1])).to.equal(true)
    })

    it('an extension keeps the price that was chosen after it was opened', async () => {
      const { ctx } = scenario.service
      const basic = await scenario.plan('basic', MONTHLY, YEARLY)
      const gold = await scenario.plan('gold', MONTHLY)
      await buy(basic.prices[0])
      const late = await open(basic.prices[0])
      ctx.clock.advance('1s')
      await buy(gold.prices[0])
      const transactionId = await flagged(late)
      ctx.clock.advance('1s')
      await buy(basic.prices[1])
      await resolveTransaction(ctx, operator('mai'), { transactionId, action: 'complete', note: 'agreed' })
      expect(await scenario.subscription()).to.include({ price_id: basic.prices[1] })
    })

    it('a trial starts now and is used up, and the dry run says so', async () => {
      useRealTime()
      const gold = await scenario.plan('gold', { ...MONTHLY, trial: PAID_TRIAL })
      const basic = await scenario.plan('basic', MONTHLY)
      const late = await open(gold.prices[0])
      await buy(basic.prices[0])
      const id = await flagged(late)
      expect(await effectsOf(id)).to.include('starts the trial of gold now')
      await resolve(id)
      expect(await scenario.subscription()).to.include({ price_id: gold.prices[0], in_trial: true })
      const again = await openCli().run([
        'transaction',
        'resolve',
        String(id),
        '--action',
        'complete',
        '--note',
        'x',
        '--yes',
      ])
      expect(again.code, 'once').to.equal(1)
    })
  })

  describe('renewals carry the customer', () => {
    const customer = async (email: string): Promise<string> =>
      (await scenario.seller.post('/api/v1/customers', { name: 'An', email })).body.data.id

    it("the subscription's customer is on the transaction of its renewal", async () => {
      const plan = await scenario.plan('basic', MONTHLY)
      const an = await customer('an@example.com')
      await buy(plan.prices[0], { customer_id: an })
      scenario.at('2026-03-30 10:00:00')
      const renewal = await renew()
      expect(renewal.paygate_customer_id).to.equal(an)
      const bo = await customer('bo@example.com')
      await scenario.seller.put('/api/v1/subscriptions/user-1/customer', { customer_id: bo })
      await scenario.reportTransfer(renewal)
      expect((await scenario.subscription()).customer_id, 'a customer attached before the payment stays').to.equal(bo)
    })

    it('have no customer if none is attached', async () => {
      const plan = await scenario.plan('basic', MONTHLY)
      await buy(plan.prices[0])
      scenario.at('2026-03-30 10:00:00')
      expect((await renew()).paygate_customer_id).to.equal(null)
    })
  })

  describe('an operator ends a subscription', () => {
    const end = () =>
      perform(
        scenario.service.ctx,
        operator('mai'),
        endSubscription,
        { note: 'refunded' },
        { app: scenario.app.app, externalRef: 'user-1' },
      )

    it('a lifetime one expires now, with subscription.updated, and can be bought again', async () => {
      const plan = await scenario.plan('pro', LIFETIME, MONTHLY)
      await buy(plan.prices[0])
      await scenario.newEvents()
      scenario.at('2026-03-05 10:00:00')
      await end()
      expect(await scenario.subscription()).to.include({ status: 'expired', current_period_end: '2026-03-05 10:00:00' })
      const events = await scenario.newEvents()
      expect(events.map(({ type }) => type)).to.deep.equal(['subscription.updated'])
      expect(events[0]?.data).to.include({ status: 'expired', current_period_end: '2026-03-05 10:00:00' })
      await buy(plan.prices[1])
      expect(await standing()).to.deep.equal([plan.prices[1], '2026-04-05 10:00:00'])
    })

    it('a payment that was opened to renew the ended period sends subscription.renewed, though a change of plan had kept its end', async () => {
      const [basic, gold] = [await scenario.plan('basic', MONTHLY), await scenario.plan('gold', MONTHLY)]
      await buy(basic.prices[0])
      await buy(gold.prices[0])
      const renewal = await scenario.checkout({ price_id: gold.prices[0] })
      scenario.at('2026-03-01 10:20:00')
      await end()
      await scenario.newEvents()
      await scenario.pay(renewal)
      expect(await standing()).to.deep.equal([gold.prices[0], '2026-04-01 10:20:00'])
      expect(await newEventTypes(scenario)).to.deep.equal(['subscription.renewed', 'subscription.updated'])
    })

    it('a lifetime one whose purchase was refunded stays until it is ended, and can be bought again then', async () => {
      const plan = await scenario.plan('pro', LIFETIME, MONTHLY)
      const bought = await buy(plan.prices[0])
      await openCli().json([
        'transaction',
        'resolve',
        ...[String(bought.transaction_id), '--action', 'refund'],
        ...['--reference', 'FT-BACK', '--note', 'fraud', '--yes'],
      ])
      expect(await flagOf(bought)).to.deep.equal(['refunded', null])
      expect((await scenario.subscription()).status).to.equal('active')
      const body = { external_ref: 'user-1', mode: 'subscription', price_id: plan.prices[1], ...URLS }
      const refused = await scenario.seller.post('/api/v1/checkout-sessions', body)
      expect([refused.status, refused.body.error.code]).to.deep.equal([409, 'already_lifetime'])
      await end()
      await buy(plan.prices[0])
      expect(await scenario.subscription()).to.include({ status: 'active', current_period_end: null })
    })

    it('the end is a plan choice: a payment for another plan, opened and paid before it, is superseded', async () => {
      const year = await scenario.plan('gold', YEARLY)
      const month = await scenario.plan('basic', MONTHLY)
      await buy(year.prices[0])
      const late = await open(month.prices[0])
      scenario.at('2026-03-05 10:00:00')
      await end()
      await scenario.reportTransfer(late, '2026-03-04 10:00:00')
      expect(await flagOf(late)).to.deep.equal(['completed', 'superseded'])
      expect((await scenario.subscription()).status).to.equal('expired')
    })

    it('a payment for the same plan that was made before the end and is reported afterwards extends from that end', async () => {
      const month = await scenario.plan('basic', MONTHLY)
      await buy(month.prices[0])
      const late = await open(month.prices[0])
      scenario.at('2026-03-05 10:00:00')
      await end()
      scenario.at('2026-03-07 10:00:00')
      await scenario.reportTransfer(late, '2026-03-04 10:00:00')
      expect(await flagOf(late)).to.deep.equal(['completed', null])
      expect(await standing()).to.deep.equal([month.prices[0], '2026-04-05 10:00:00'])
    })

    it('one whose next period was paid in advance ends, too', async () => {
      const month = await scenario.plan('basic', MONTHLY)
      await buy(month.prices[0])
      await buy(month.prices[0])
      scenario.at('2026-03-05 10:00:00')
      await end()
      scenario.at('2026-03-06 10:00:00')
      await buy(month.prices[0])
      expect(await standing()).to.deep.equal([month.prices[0], '2026-04-06 10:00:00'])
    })

    it('one that has ended is refused', async () => {
      const month = await scenario.plan('basic', MONTHLY)
      await buy(month.prices[0])
      scenario.at('2026-04-01 10:00:00')
      const refused = await end().then(
        () => null,
        (error: unknown) => (error as { code?: string }).code,
      )
      expect(refused).to.equal('invalid_request')
    })
  })
})
