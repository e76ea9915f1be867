import { checkoutSessions } from '#checkout/store.ts'
import { auditLog } from '#commands/store.ts'
import type { Transaction } from '../../client/src/types.ts'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { getApp, apps } from '#apps/store.ts'
import { getSubscription } from '#subscriptions/store.ts'
import { stopWithCleanLedger } from '../support/clean-ledger.ts'
import { archivePlan, disableBankAccount, disableMethod, enableMethod, setDisabled } from '../support/operators.ts'
import type { Answer } from '../support/api.ts'
import { expectError } from '../support/expect-error.ts'
import { FREE_TRIAL, LIFETIME, MONTHLY, YEARLY } from '../support/factories.ts'
import { startScenario, newEventTypes, type Scenario } from '../support/scenario.ts'
import { debitUnderWay, startBankScenario, transfer } from '../pages/bank-scenario.ts'
import { attributes, offeredMethods, textOf } from '../pages/read-page.ts'
import type { Envelope, Redirect } from '../support/answers.ts'

const FORM = { 'Content-Type': 'application/x-www-form-urlencoded', Accept: 'text/html' }
const HTML = { Accept: 'text/html', 'Accept-Language': 'en' }
const RENEWED = ['subscription.renewed', 'subscription.updated']

describe('renewal page, GET /renew/{token} and POST /renew/{token}', () => {
  let scenario: Scenario
  let plan: { id: string; prices: string[] }
  let token: string

  const begin = async (open: () => Promise<Scenario>) => {
    scenario = await open()
    plan = await scenario.plan('premium', MONTHLY, YEARLY, LIFETIME)
    scenario.at('2026-01-31 10:00:00')
    await scenario.pay(await scenario.checkout({ price_id: plan.prices[0] }))
    token = await scenario.renewalToken()
    await scenario.newEvents()
  }
  afterEach(() => stopWithCleanLedger(scenario.service))

  const page = (language = 'en') =>
    scenario.service.call('GET', `/renew/${token}`, { headers: { ...HTML, 'Accept-Language': language } })
  const renew = (payment_method: string, extra: object = {}, of = token) =>
    scenario.service.call<Envelope<Redirect>>('POST', `/renew/${of}`, {
      headers: { 'Content-Type': 'application/json' },
      raw: JSON.stringify({ payment_method, ...extra }),
    })
  const submit = (body: string) => scenario.service.call('POST', `/renew/${token}`, { headers: FORM, raw: body })
  /** Where the page's links to the seller's site lead. */
  const waysBack = async (path = ''): Promise<string[]> => {
    const { text } = await scenario.service.call('GET', `/renew/${token}${path}`, { headers: HTML })
    return [...text.matchAll(/<a class="button[^"]*" href="(https?:[^"]*)">Back to Reader</g)].map(([, href]) => href!)
  }
  const linkOf = (answer: Answer<Redirect>): string => answer.body.data.redirect_url
  const transactionsOf = async (): Promise<Transaction[]> =>
    (await scenario.seller.get('/api/v1/transactions?external_ref=user-1')).body.data

  describe('of an app that takes the test method alone', () => {
    beforeEach(() => begin(startScenario))

    describe('before paying', () => {
      it('shows the amount and exactly what the payment will do', async () => {
        scenario.at('2026-02-26 10:00:00')
        const { status, text } = await page()
        expect(status).to.equal(200)
        expect(text).to.contain('₫99,000').and.to.contain('for 1 month')
        const shown = textOf({ text })
        expect(shown).to.contain('Renew Premium').and.to.contain('Currently valid until 28 February 2026')
        expect(shown).to.contain('After payment: valid until 31 March 2026 (adds 1 month)')
        expect(text).to.contain('TEST')
      })

      it('is in Vietnamese for browsers that ask for it', async () => {
        scenario.at('2026-02-26 10:00:00')
        const vietnamese = await page('vi')
        expect(vietnamese.text).to.contain('<html lang="vi">')
        expect(textOf(vietnamese)).to.contain('Gia hạn Premium').and.to.contain('99.000')
        expect(textOf(vietnamese)).to.contain('Sau khi thanh toán: dùng đến 31/3/2026 (thêm 1 tháng)')
        expect(vietnamese.headers['content-language']).to.equal('vi')
      })

      it('after the end a new period starts at payment time', async () => {
        scenario.at('2026-03-03 12:00:00')
        const { text } = await page()
        expect(text).to.contain('Ended on').and.to.contain('starts today')
        expect(text).to.contain('datetime="2026-04-03"').and.not.to.contain('adds 1')
      })

      it('has a strict policy, no outside address and no referrer', async () => {
        scenario.at('2026-02-26 10:00:00')
        const { headers, text } = await page()
        expect(headers['content-security-policy']).to.contain("default-src 'none'").and.to.contain("form-action 'self'")
        expect(headers['referrer-policy']).to.equal('no-referrer')
        expect(headers['cache-control']).to.equal('no-store')
        expect(text.match(/https?:\/\/(?!www\.w3\.org)[^"\s]+/g)).to.equal(null)
      })

      it('an unknown or malformed token is 404', async () => {
        for (const wrong of ['0'.repeat(64), 'short', `${token}0`]) {
          expect((await scenario.service.call('GET', `/renew/${wrong}`)).status).to.equal(404)
          expect((await renew('test', {}, wrong)).status).to.equal(404)
        }
      })

      it('a lifetime subscription is 410, for the page and for what it posts', async () => {
        await scenario.seller.put('/api/v1/subscriptions/user-1/plan', { price_id: plan.prices[2] })
        const answer = await renew('test')
        expect(linkOf(answer)).to.equal(`${scenario.service.url}/renew/${token}`)
        expect((await scenario.subscription()).current_period_end).to.equal(null)
        const over = await page()
        expect(over.status).to.equal(410)
        expect(textOf(over), 'whose page it is, and that it is a sandbox').to.match(
          /TEST .* Reader You have lifetime access/,
        )
        expect(await waysBack()).to.deep.equal(['https://shop.example'])
        expect((await renew('test')).status).to.equal(410)
      })
    })

    describe('paying', () => {
      it('with the test method renews at once and leads back to the page, which shows the new end', async () => {
        scenario.at('2026-02-26 10:00:00')
        const answer = await renew('test')
        expect(answer.status).to.equal(200)
        expect(answer.body).to.deep.equal({
          success: true,
          data: { redirect_url: `${scenario.service.url}/renew/${token}` },
        })
        expect((await scenario.subscription()).current_period_end).to.equal('2026-03-31 10:00:00')
        expect(await newEventTypes(scenario)).to.deep.equal(RENEWED)
        const shown = textOf(await page())
        const { transaction_id } = (await transactionsOf())[0]!
        expect(shown).to.match(
          /Payment received ₫99,000 For Premium · 1 month Valid until 31 March 2026 Paid 26 February 2026, 10:00 UTC Method Test payment Reference \w+ Back to/,
        )
        expect(shown).to.contain(`Reference ${transaction_id} Back to Reader`)
      })

      it('within the grace window and after it a new period starts at payment time', async () => {
        scenario.at('2026-03-03 12:00:00')
        await renew('test')
        expect((await scenario.subscription()).current_period_end).to.equal('2026-04-03 12:00:00')
        scenario.at('2026-07-01 08:00:00')
        await renew('test')
        expect((await scenario.subscription()).current_period_end).to.equal('2026-08-01 08:00:00')
      })

      it('a form is led on by 303', async () => {
        const answer = await submit('payment_method=test&period_end=2026-02-28+10%3A00%3A00')
        expect(answer.status).to.equal(303)
        expect(answer.headers['location']).to.equal(`/renew/${token}`)
        expect((await scenario.subscription()).current_period_end).to.equal('2026-03-31 10:00:00')
      })

      it('pays the current price after a plan switch, at its regular amount', async () => {
        const gold = await scenario.plan('gold', { ...YEARLY, trial: FREE_TRIAL })
        await scenario.seller.put('/api/v1/subscriptions/user-1/plan', { price_id: gold.prices[0] })
        expect((await page()).text)
          .to.contain('₫990,000')
          .and.to.contain('datetime="2027-02-28"')
        await renew('test')
        expect(await scenario.subscription()).to.include({
          plan_ref: 'gold',
          current_period_end: '2027-02-28 10:00:00',
        })
        expect((await transactionsOf())[0]).to.include({ amount: 990_000, plan_ref: 'gold', status: 'completed' })
      })

      it('renews archived prices of archived plans', async () => {
        await archivePlan(scenario.service.ctx, 'tester', scenario.app.app, Number(plan.id.slice(5)))
        expect((await page()).status).to.equal(200)
        await renew('test')
        expect((await scenario.subscription()).current_period_end).to.equal('2026-03-31 10:00:00')
      })

      it('after a trial the regular amount is asked, never the trial’s', async () => {
        const trial = await scenario.plan('trial', { ...MONTHLY, trial: FREE_TRIAL })
        await scenario.checkout({ price_id: trial.prices[0], external_ref: 'user-2' })
        token = await scenario.renewalToken('user-2')
        await renew('test')
        const [transaction] = (await scenario.seller.get('/api/v1/transactions?external_ref=user-2')).body.data
        expect(transaction!.amount).to.equal(99_000)
        expect((await scenario.subscription('user-2')).in_trial).to.equal(false)
      })

      it('an unknown method is invalid_request, one that is not enabled is payment_method_unavailable', async () => {
        expectError(await renew('cash'), 400, 'invalid_request')
        expectError(await renew('card'), 400, 'payment_method_unavailable')
        expect(await transactionsOf()).to.have.lengthOf(1)
      })
    })

    describe('leads back to the seller where nothing can be paid', () => {
      it('if reminders are stopped', async () => {
        const answer = await scenario.service.call('POST', `/renew/${token}/opt-out`, { headers: HTML })
        expect(textOf(answer))
          .to.contain('Reminders are stopped')
          .and.to.contain('Back to Reader Go to the renewal page')
        expect(await waysBack('/opt-out')).to.deep.equal(['https://shop.example'])
      })

      it('if the app is disabled', async () => {
        scenario.at('2026-02-26 10:00:00')
        expect(await waysBack(), 'while it can be paid').to.deep.equal([])
        await scenario.service.ctx.db.update(
          apps,
          { disabledAt: null },
          { disabledAt: scenario.service.ctx.clock.now() },
        )
        expect(await waysBack()).to.deep.equal(['https://shop.example'])
      })

      it('if there is no method', async () => {
        scenario.at('2026-02-26 10:00:00')
        await disableMethod(scenario.service.ctx, 'tester', scenario.app.app, 'test')
        expect(textOf(await page())).to.contain('No payment method is available right now.')
        expect(await waysBack()).to.deep.equal(['https://shop.example'])
      })

      it('if the period is valid without a payment', async () => {
        const trial = { ...MONTHLY, trial: FREE_TRIAL }
        const gold = await scenario.plan('gold', trial)
        await scenario.checkout({ price_id: gold.prices[0], external_ref: 'user-2' })
        token = await scenario.renewalToken('user-2')
        expect(textOf(await page())).to.match(/valid until 7 February 2026\. Back to Reader/)
        expect(await waysBack()).to.deep.equal(['https://shop.example'])
      })

      it('has no link if no checkout names the seller’s site', async () => {
        await scenario.service.ctx.db.update(
          checkoutSessions,
          { appId: scenario.app.app.id },
          { cancelUrl: 'reader://back' },
        )
        await scenario.service.ctx.db.update(
          apps,
          { disabledAt: null },
          { disabledAt: scenario.service.ctx.clock.now() },
        )
        expect((await page()).text).not.to.contain('Back to Reader')
      })
    })

    describe('a period that is already renewed', () => {
      it('says so, and asks before another payment is taken', async () => {
        scenario.at('2026-02-26 10:00:00')
        const { text: before } = await page()
        expect(before).not.to.contain('Payment received').and.not.to.contain('<details')
        await renew('test')
        const { text } = await page()
        expect(text).to.contain('Payment received').and.to.contain('No payment is due')
        expect(text).to.match(/<details[^>]*><summary>Pay for another period<\/summary>/)
        const again = await submit('payment_method=test')
        expect(again.status).to.equal(409)
        expect(again.text).to.contain('You have not been charged again')
        expect((await scenario.subscription()).current_period_end).to.equal('2026-03-31 10:00:00')
        const confirmed = await submit('payment_method=test&period_end=2026-03-31+10%3A00%3A00')
        expect(confirmed.status).to.equal(303)
        expect((await scenario.subscription()).current_period_end).to.equal('2026-04-30 10:00:00')
      })

      it('a page that was open in another tab asks again instead of paying twice', async () => {
        scenario.at('2026-02-26 10:00:00')
        await submit('payment_method=test&period_end=2026-02-28+10%3A00%3A00')
        const stale = await submit('payment_method=test&period_end=2026-02-28+10%3A00%3A00')
        expect(stale.status).to.equal(409)
        expect(stale.text).to.contain('name="period_end" value="2026-03-31 10:00:00"')
        expectError(await renew('test', { period_end: '2026-02-28 10:00:00' }), 400, 'invalid_request')
        expect(await transactionsOf()).to.have.lengthOf(2)
      })

      it('a page that is sent several times at once pays once, with each kind of body', async () => {
        scenario.at('2026-02-26 10:00:00')
        const sixTimes = <Answer>(send: () => Promise<Answer>) => Promise.all(Array.from({ length: 6 }, send))
        const endAfter = async () => (await scenario.subscription()).current_period_end
        const forms = await sixTimes(() => submit('payment_method=test&period_end=2026-02-28+10%3A00%3A00'))
        expect(forms.every(({ status }) => status === 303 || status === 409)).to.equal(true)
        expect(await endAfter()).to.equal('2026-03-31 10:00:00')
        await sixTimes(() => renew('test', { period_end: '2026-03-31 10:00:00' }))
        expect(await endAfter()).to.equal('2026-04-30 10:00:00')
        expect(await transactionsOf()).to.have.lengthOf(3)
      })

      it('once the next reminder is due it is a renewal like any other', async () => {
        scenario.at('2026-02-26 10:00:00')
        await renew('test')
        scenario.at('2026-03-28 10:00:00')
        expect((await page()).text).not.to.contain('Payment received')
        await renew('test')
        expect((await scenario.subscription()).current_period_end).to.equal('2026-04-30 10:00:00')
      })
    })
  })

  describe('of an app that takes bank transfers, too', () => {
    beforeEach(() => begin(startBankScenario))

    describe('a payment that is still payable', () => {
      it('opens a checkout of its own with the bank page, and the link leads back to it', async () => {
        const first = linkOf(await renew('bank_transfer'))
        expect(first).to.match(new RegExp(`^${scenario.service.url}/checkout/[0-9a-f]{64}/bank$`))
        expect(first).not.to.contain(token)
        expect((await scenario.service.call('GET', first)).status).to.equal(200)
        const { text } = await page()
        expect(text).to.contain('still open').and.to.contain(first.slice(scenario.service.url.length, -'/bank'.length))
        expect(linkOf(await renew('bank_transfer'))).to.equal(first)
        expect(await transactionsOf()).to.have.lengthOf(2)
      })

      it('several requests at the same moment share one payment', async () => {
        const answers = await Promise.all(Array.from({ length: 6 }, () => renew('bank_transfer')))
        expect(new Set(answers.map(linkOf)).size).to.equal(1)
        expect(await transactionsOf()).to.have.lengthOf(2)
      })

      it('after a part of the open payment the page asks for the rest, in one box', async () => {
        await renew('bank_transfer')
        await transfer(scenario, (await transactionsOf())[0]!.transaction_id, 60_000)
        const shown = await page()
        expect(textOf(shown)).to.contain('Left to pay: ₫39,000').and.not.to.contain('for 1 month')
        expect(textOf(shown)).to.contain(
          'We have already received ₫60,000 of ₫99,000. Whichever method you choose, you pay only the rest. Continue that payment',
        )
        expect(shown.text.match(/class="notice/g)).to.have.lengthOf(1)
      })

      it('another method pays the same payment, not a second one', async () => {
        await renew('bank_transfer')
        await renew('test')
        expect((await transactionsOf()).map(({ status }) => status)).to.deep.equal(['completed', 'completed'])
        expect(await newEventTypes(scenario)).to.deep.equal(RENEWED)
      })

      it('once it has expired, or the plan was switched, the link opens another', async () => {
        const first = linkOf(await renew('bank_transfer'))
        await scenario.seller.put('/api/v1/subscriptions/user-1/plan', { price_id: plan.prices[1] })
        const second = linkOf(await renew('bank_transfer'))
        expect(second).not.to.equal(first)
        scenario.at('2026-01-31 12:00:00')
        expect(linkOf(await renew('bank_transfer'))).not.to.equal(second)
        expect((await transactionsOf()).map(({ amount }) => amount)).to.deep.equal([990_000, 990_000, 99_000, 99_000])
      })

      it('whose checkout expired after a part leads to the bank page for the rest, which renews', async () => {
        const bankPage = linkOf(await renew('bank_transfer'))
        await scenario.service.call('GET', bankPage)
        const { transaction_id: id } = (await transactionsOf())[0]!
        await transfer(scenario, id, 60_000)
        scenario.at('2026-02-25 12:00:00')
        const shown = await page()
        expect(textOf(shown)).to.contain('Left to pay: ₫39,000').and.not.to.contain('Choose')
        expect(shown.text).to.contain(`href="${bankPage.slice(scenario.service.url.length)}"`)
        expect(linkOf(await renew('bank_transfer'))).to.equal(bankPage)
        expect((await scenario.service.call('GET', bankPage)).status).to.equal(200)
        await transfer(scenario, id, 39_000)
        expect(await scenario.subscription()).to.include({ current_period_end: '2026-03-31 10:00:00' })
        expect(await transactionsOf()).to.have.lengthOf(2)
      })

      it('whose rest nobody can transfer any more is not led to: another is opened', async () => {
        const bankPage = linkOf(await renew('bank_transfer'))
        await scenario.service.call('GET', bankPage)
        await transfer(scenario, (await transactionsOf())[0]!.transaction_id, 60_000)
        scenario.at('2026-02-25 12:00:00')
        const { ctx } = scenario.service
        const { bankAccountId } = await getApp(ctx.db, scenario.app.app.id)
        await disableBankAccount(ctx, 'tester', bankAccountId!)
        expect((await page()).text).not.to.contain(bankPage.slice(scenario.service.url.length))
        expect(linkOf(await renew('test'))).not.to.equal(bankPage)
        expect(await transactionsOf()).to.have.lengthOf(3)
      })

      it('that is a debit under way is not asked for again, after its checkout expired, too', async () => {
        const checkout = linkOf(await renew('bank_transfer')).slice(0, -'/bank'.length)
        await debitUnderWay(scenario, (await transactionsOf())[0]!.transaction_id)
        for (const time of ['2026-01-31 10:30:00', '2026-01-31 12:00:00']) {
          scenario.at(time)
          const shown = await page()
          expect(textOf(shown), time).to.contain('Your payment is being processed. There is nothing more to do.')
          expect(offeredMethods(shown), time).to.deep.equal([])
          expect(attributes(shown, 'a', 'href'), time).to.include('https://shop.example')
          expect(linkOf(await renew('test')), time).to.equal(checkout)
        }
        expect((await transactionsOf()).map(({ status }) => status)).to.deep.equal(['pending', 'completed'])
      })

      it('that is a debit under way for the price before a plan switch is not asked for again, until another plan is bought', async () => {
        const checkout = linkOf(await renew('bank_transfer')).slice(0, -'/bank'.length)
        await debitUnderWay(scenario, (await transactionsOf())[0]!.transaction_id)
        await scenario.seller.put('/api/v1/subscriptions/user-1/plan', { price_id: plan.prices[1] })
        expect(offeredMethods(await page())).to.deep.equal([])
        expect(linkOf(await renew('test'))).to.equal(checkout)
        expect(await transactionsOf()).to.have.lengthOf(2)
        const other = await scenario.plan('other', MONTHLY)
        await scenario.pay(await scenario.checkout({ price_id: other.prices[0] }))
        scenario.at('2026-02-27 12:00:00')
        expect(offeredMethods(await page())).to.include('test')
        expect(linkOf(await renew('test'))).not.to.equal(checkout)
      })

      it('of a disabled app completes; nothing new is opened', async () => {
        await renew('bank_transfer')
        const { ctx } = scenario.service
        await setDisabled(ctx, 'tester', await getApp(ctx.db, scenario.app.app.id), true)
        expect((await renew('bank_transfer')).status).to.equal(200)
        scenario.at('2026-01-31 12:00:00')
        expectError(await renew('bank_transfer'), 403, 'app_disabled')
        expect((await page()).text).to.contain('is not accepting payments')
      })
    })

    it('a customer attached between opening and paying stays', async () => {
      await renew('bank_transfer')
      const id = await scenario.customer()
      await scenario.seller.put('/api/v1/subscriptions/user-1/customer', { customer_id: id })
      const [open] = await transactionsOf()
      await transfer(scenario, open!.transaction_id, 99_000)
      expect(await scenario.subscription()).to.include({ customer_id: id, current_period_end: '2026-03-31 10:00:00' })
    })

    it('a second payment opened for a period that is already renewed extends it without subscription.renewed', async () => {
      scenario.at('2026-02-28 09:30:00')
      await renew('bank_transfer')
      const [open] = await transactionsOf()
      await scenario.pay(await scenario.checkout({ price_id: plan.prices[0] }))
      expect(await newEventTypes(scenario)).to.deep.equal(RENEWED)
      await transfer(scenario, open!.transaction_id, 99_000)
      expect(await newEventTypes(scenario)).to.deep.equal(['subscription.updated'])
      expect((await scenario.subscription()).current_period_end).to.equal('2026-04-30 10:00:00')
    })

    it('lists every method that the app has enabled and that can take the currency, and no other', async () => {
      await enableMethod(scenario.service.ctx, 'tester', scenario.app.app, 'card', {
        secretKey: 'sk',
        webhookSecret: 'wh',
      })
      const methodsIn = ({ text }: { readonly text: string }) =>
        [...text.matchAll(/name="payment_method" value="(\w+)"/g)].map(([, name]) => name)
      expect(methodsIn(await page())).to.have.members(['card', 'payos', 'bank_transfer', 'test'])
      const dollars = await scenario.plan('dollars', { ...MONTHLY, amount: 999, currency: 'USD' })
      await scenario.seller.put('/api/v1/subscriptions/user-1/plan', { price_id: dollars.prices[0] })
      const { text } = await page()
      expect(methodsIn({ text })).to.have.members(['card', 'test'])
      expect(text).to.contain('$9.99')
    })
  })
})

describe('stopping reminders by link, GET /renew/{token}/opt-out and POST /renew/{token}/opt-out', () => {
  let scenario: Scenario
  let path: string

  beforeEach(async () => {
    scenario = await startScenario()
    const plan = await scenario.plan('premium', MONTHLY)
    await scenario.pay(await scenario.checkout({ price_id: plan.prices[0] }))
    path = `/renew/${await scenario.renewalToken()}/opt-out`
  })
  afterEach(() => scenario.service.stop())

  const stoppedAt = async () =>
    (await getSubscription(scenario.service.ctx.db, scenario.app.app.id, 'user-1')).remindersStoppedAt

  it('GET asks and stops nothing, so that programs that open links do no harm', async () => {
    const { status, text } = await scenario.service.call('GET', path, { headers: { Accept: 'text/html' } })
    expect(status).to.equal(200)
    expect(text).to.contain('<form method="post"').and.to.contain('Stop reminders for Premium?')
    expect(await stoppedAt()).to.equal(null)
  })

  it('POST stops, says so, and may be done twice', async () => {
    for (let time = 1; time <= 2; time += 1) {
      const { status, text } = await scenario.service.call('POST', path, { headers: FORM, raw: '' })
      expect(status).to.equal(200)
      expect(text).to.contain('Reminders are stopped')
    }
    expect(await stoppedAt()).to.be.instanceOf(Date)
    expect((await scenario.service.call('GET', path, { headers: { Accept: 'text/html' } })).text).to.contain(
      'are stopped',
    )
    const audited = await scenario.service.ctx.db.all(auditLog, "WHERE action = 'subscription.opt-out'")
    expect(
      audited.map(({ actor }) => actor),
      'once: the second time changed nothing',
    ).to.deep.equal(['payer page'])
  })

  const oneClicks: [string, string][] = [
    ['application/x-www-form-urlencoded', 'List-Unsubscribe=One-Click'],
    [
      'multipart/form-data; boundary=b',
      '--b\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--b--\r\n',
    ],
  ]
  for (const [type, raw] of oneClicks) {
    it(`a mail program’s one click as ${type.split(';')[0]} stops without asking or redirecting (RFC 8058)`, async () => {
      const { status } = await scenario.service.call('POST', path, { headers: { 'Content-Type': type }, raw })
      expect(status).to.equal(200)
      expect(await stoppedAt()).to.be.instanceOf(Date)
    })
  }

  it('an unknown token is 404', async () => {
    expect((await scenario.service.call('POST', `/renew/${'a'.repeat(64)}/opt-out`)).status).to.equal(404)
  })
})
