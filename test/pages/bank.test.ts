import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { bankAccounts } from '#bank-accounts/store.ts'
import { resolveTransaction } from '#decisions/resolve-transaction.ts'
import { listChanges, transactions } from '#transactions/store.ts'
import { disableMethod } from '../support/operators.ts'
import { aPromotion, MONTHLY } from '../support/factories.ts'
import type { Scenario } from '../support/scenario.ts'
import { ACCOUNT, debitUnderWay, startBankScenario, transfer } from './bank-scenario.ts'
import { attributes, offeredMethods, textOf } from './read-page.ts'
import { operator } from '#commands/caller.ts'

const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' }
const UNKNOWN = `/checkout/${'0'.repeat(64)}`

describe('the bank-transfer page, GET /checkout/{token}/bank and GET /checkout/{token}/qr.svg', () => {
  let scenario: Scenario
  let priceId: string
  let open: { checkout_url: string; transaction_id: number }

  beforeEach(async () => {
    scenario = await startBankScenario({ name: 'Reader' })
    priceId = (await scenario.plan('premium', MONTHLY)).prices[0]!
    open = await scenario.checkout({ price_id: priceId })
  })
  afterEach(() => scenario.service.stop())

  const get = (path: string, headers: Record<string, string> = {}) =>
    scenario.service.call('GET', open.checkout_url + path, { headers })
  const copied = (page: { text: string }) => attributes(page, 'button', 'data-copy')

  it('shows bank, account, holder, amount and note in the order in which banking apps ask for them, a QR code and a countdown', async () => {
    const page = await get('/bank')
    expect(page.status).to.equal(200)
    const [number, amount, code] = copied(page)
    expect([number, amount]).to.deep.equal([ACCOUNT.number, '99000'])
    expect(code).to.match(/^PG[2-9A-HJ-NP-Z]{8}$/)
    const text = textOf(page)
    expect(text.replaceAll(' Copy', '')).to.include(
      `Bank Vietcombank Account number ${ACCOUNT.number} Account holder ${ACCOUNT.holder} Amount ₫99,000 Transfer note (nội dung) ${code!}`,
    )
    expect(attributes(page, 'img', 'src')).to.deep.equal([`${new URL(open.checkout_url).pathname}/qr.svg`])
    expect(attributes(page, 'span', 'data-countdown')).to.deep.equal(['3600'])
  })

  it('is where the payer who chooses bank transfer is sent', async () => {
    const path = new URL(open.checkout_url).pathname
    const form = await scenario.service.call('POST', `${open.checkout_url}/resolve?lang=vi`, {
      headers: FORM,
      raw: 'payment_method=bank_transfer',
    })
    expect([form.status, form.headers['location']]).to.deep.equal([303, `${path}/bank?lang=vi`])
    const json = await scenario.service.call('POST', `${open.checkout_url}/resolve`, {
      headers: { 'Content-Type': 'application/json' },
      raw: '{"payment_method":"bank_transfer"}',
    })
    expect(json.body).to.deep.equal({ success: true, data: { redirect_url: `${open.checkout_url}/bank` } })
  })

  it('is opened once, however many open it at the same moment', async () => {
    const pages = await Promise.all([get('/bank'), get('/bank'), get('/bank'), get('/bank')])
    expect(pages.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200])
    const changes = await listChanges(scenario.service.ctx.db, open.transaction_id)
    expect(changes.filter(({ kind }) => kind === 'bank_page')).to.have.length(1)
  })

  it('lets its transaction take bank transfers, from the first opening on', async () => {
    const opened = async () => (await scenario.service.ctx.db.one(transactions, ''))!.bankPageOpenedAt !== null
    expect(await opened()).to.equal(false)
    await get('/bank')
    expect(await opened()).to.equal(true)
  })

  it('shows the same transfer code each time', async () => {
    const [first, second] = [copied(await get('/bank')), copied(await get('/bank'))]
    expect(first).to.deep.equal(second)
  })

  it('is in Vietnamese for browsers that ask for it', async () => {
    const text = textOf(await get('/bank', { 'Accept-Language': 'vi' }))
    expect(text).to.match(/Thanh toán bằng chuyển khoản 99\.000\s₫/)
    expect(text).to.include(`Số tài khoản ${ACCOUNT.number}`)
  })

  it('shows after a partial transfer what has arrived and what is still missing, under the same code', async () => {
    const [, , code] = copied(await get('/bank'))
    await transfer(scenario, open.transaction_id, 60_000)
    const page = await get('/bank')
    expect(textOf(page)).to.include('Left to pay: ₫39,000').and.to.include('We received ₫60,000 of ₫99,000.')
    expect(copied(page)).to.deep.equal([ACCOUNT.number, '39000', code])
    expect(attributes(page, 'progress', 'value')).to.deep.equal(['60000'])
    await transfer(scenario, open.transaction_id, 9_000)
    expect(copied(await get('/bank'))).to.deep.equal([ACCOUNT.number, '30000', code])
  })

  it('what is due: after a part has come the checkout asks for the rest, and says how much has arrived', async () => {
    const checkout = new URL(open.checkout_url).pathname
    await get('/bank')
    expect(textOf(await get(''))).to.include('Amount due: ₫99,000')
    await transfer(scenario, open.transaction_id, 60_000)
    expect(attributes(await get('/bank'), 'a', 'href'), 'other ways to pay').to.include(checkout)
    const page = await get('')
    expect(textOf(page)).to.include('Left to pay: ₫39,000').and.not.to.include('for 1 month')
    expect(textOf(page)).to.include('We have already received ₫60,000 of ₫99,000.')
    expect(offeredMethods(page)).to.include.members(['bank_transfer', 'test'])
  })

  it('leads on to success_url with 303 once the money is complete, also after the link expired', async () => {
    await get('/bank')
    await transfer(scenario, open.transaction_id, 60_000)
    await transfer(scenario, open.transaction_id, 39_000)
    for (const time of ['2026-03-01 10:00:00', '2026-03-02 10:00:00']) {
      scenario.at(time)
      for (const path of ['/bank', '/qr.svg', '/qr.png']) {
        const page = await get(path)
        expect([page.status, page.headers['location']], path).to.deep.equal([303, 'https://shop.example/ok'])
      }
    }
  })

  it('is not shown after the link expired; the page says that a transfer already made still counts', async () => {
    await get('/bank')
    scenario.at('2026-03-01 11:00:00')
    const page = await get('/bank')
    expect(page.status).to.equal(410)
    expect(page.text).not.to.include(ACCOUNT.number)
    expect(textOf(page)).to.include('Already transferred? Your money is safe.')
    expect((await get('/qr.svg')).status).to.equal(410)
    await transfer(scenario, open.transaction_id, 99_000)
    expect((await get('/bank')).headers['location']).to.equal('https://shop.example/ok')
  })

  it('after it expired the checkout says how much has arrived, and that the rest still counts: without contradiction', async () => {
    const [, , code] = copied(await get('/bank'))
    await transfer(scenario, open.transaction_id, 60_000)
    scenario.at('2026-03-01 11:00:00')
    const page = await get('')
    expect(page.status).to.equal(410)
    const text = textOf(page)
    expect(text).to.include('We received ₫60,000 of ₫99,000. Left to pay: ₫39,000.')
    expect(text).to.include(`transfer the remaining ₫39,000 with the note ${code!}`)
    expect(text).to.include('Please contact Reader')
    expect(text).to.include('Pay ₫39,000')
    expect(text).not.to.match(/make another transfer/i)
    expect(copied(page), 'what to type in').to.deep.equal([ACCOUNT.number, '39000', code])
    expect(attributes(page, 'a', 'href')).to.include(`${new URL(open.checkout_url).pathname}/bank`)
    await transfer(scenario, open.transaction_id, 39_000)
    expect((await scenario.subscription()).status).to.equal('active')
  })

  describe('of a payment that came in part, after the link expired', () => {
    beforeEach(async () => {
      await get('/bank')
      await transfer(scenario, open.transaction_id, 60_000)
      scenario.at('2026-03-05 11:00:00')
    })

    it('shows the amount still due and its QR code, also days later, and the rest counts', async () => {
      const page = await get('/bank')
      expect(page.status).to.equal(200)
      const [number, amount] = copied(page)
      expect([amount, number]).to.deep.equal(['39000', ACCOUNT.number])
      const text = textOf(page)
      expect(text).to.include('Left to pay: ₫39,000').and.to.include('We received ₫60,000 of ₫99,000.')
      expect(text).to.include('This link has expired, but the rest still counts when it arrives.')
      expect(text).to.include('Would you rather have your money back? Please contact Reader. Back to Reader')
      for (const path of ['/qr.svg', '/qr.png']) expect((await get(path)).status, path).to.equal(200)
      await transfer(scenario, open.transaction_id, 39_000)
      expect((await get('/bank')).headers['location']).to.equal('https://shop.example/ok')
      expect((await scenario.subscription()).status).to.equal('active')
    })

    it('counts nothing down, offers no other method, and does not load itself again and again', async () => {
      const page = await get('/bank')
      expect(attributes(page, 'span', 'data-countdown')).to.deep.equal([])
      expect(attributes(page, 'a', 'href')).not.to.include(new URL(open.checkout_url).pathname)
      expect(page.text).to.match(/<div class="waiting"[^>]* data-late/)
      expect((await get('/status')).body).to.deep.equal({ status: 'pending', expired: true, redirect_url: null })
    })

    it('takes no other payment: the checkout and its choice of a method stay 410', async () => {
      expect((await get('')).status).to.equal(410)
      const chosen = await scenario.service.call('POST', `${open.checkout_url}/resolve`, {
        headers: { 'Content-Type': 'application/json' },
        raw: '{"payment_method":"bank_transfer"}',
      })
      expect([chosen.status, chosen.body.error.code]).to.deep.equal([410, 'checkout_expired'])
    })

    it('is 410 and names no account where the payment would not be applied any more', async () => {
      const gold = await scenario.plan('gold', { ...MONTHLY, amount: 50_000 })
      await scenario.pay(await scenario.checkout({ price_id: gold.prices[0] }))
      for (const path of ['', '/bank', '/qr.svg']) {
        const page = await get(path)
        expect(page.status, path).to.equal(410)
        expect(page.text).not.to.include(ACCOUNT.number)
      }
      expect(textOf(await get('/bank'))).to.include(
        'Please contact Reader to complete the payment or to get your money',
      )
    })

    it('is 410 once the account is disabled', async () => {
      await scenario.service.ctx.db.update(
        bankAccounts,
        { disabledAt: null },
        { disabledAt: scenario.service.ctx.clock.now() },
      )
      for (const path of ['/bank', '/qr.svg']) expect((await get(path)).status, path).to.equal(410)
    })
  })

  it('asks for no transfer after a part that came by another method, since none would be accepted', async () => {
    await transfer(scenario, open.transaction_id, 60_000)
    scenario.at('2026-03-01 11:00:00')
    const text = textOf(await get(''))
    expect(text).to.include('We received ₫60,000 of ₫99,000.')
    expect(text).to.include('Please contact Reader to complete the payment or to get your money back.')
    expect(text).not.to.include('with the note')
  })

  describe('the moment after the payment, GET /checkout/{token}/paid', () => {
    it('says what was received, what it bought, until when, when and how it was paid and the reference, and goes on by itself', async () => {
      const [, , code] = copied(await get('/bank'))
      await transfer(scenario, open.transaction_id, 99_000)
      const page = await get('/paid')
      expect(page.status).to.equal(200)
      expect(textOf(page)).to.include(
        `Payment received ₫99,000 For Premium · 1 month Valid until 1 April 2026 Paid 1 March 2026, 10:00 UTC Method Bank transfer Reference ${code!} Back to Reader`,
      )
      expect(page.text).to.match(/<meta http-equiv="refresh" content="\d;url=https:\/\/shop\.example\/ok">/)
      expect(attributes(page, 'a', 'href')).to.include('https://shop.example/ok')
    })

    it('leads on to success_url once the whole payment was refunded', async () => {
      await get('/bank')
      await transfer(scenario, open.transaction_id, 99_000)
      const refund = { action: 'refund', note: 'changed her mind', reference: 'FT-BACK' } as const
      await resolveTransaction(scenario.service.ctx, operator('mai'), { transactionId: open.transaction_id, ...refund })
      const page = await get('/paid')
      expect([page.status, page.headers['location']]).to.deep.equal([303, 'https://shop.example/ok'])
    })

    it('leads back to the bank page while money is missing, and is 410 after the end', async () => {
      const { pathname } = new URL(open.checkout_url)
      expect((await get('/paid?lang=vi')).headers['location']).to.equal(`${pathname}/bank?lang=vi`)
      scenario.at('2026-03-01 11:00:00')
      expect((await get(String((await get('/paid')).headers['location']).slice(pathname.length))).status).to.equal(410)
    })

    it('says that money which could not be applied is not lost', async () => {
      const late = await scenario.checkout({ price_id: priceId })
      await scenario.service.call('GET', `${late.checkout_url}/bank`)
      scenario.at('2026-03-01 10:05:00')
      const gold = await scenario.plan('gold', { ...MONTHLY, amount: 50_000 })
      await scenario.pay(await scenario.checkout({ price_id: gold.prices[0] }))
      await transfer(scenario, late.transaction_id, 99_000)
      expect((await scenario.transaction(late.transaction_id)).flag_reason).to.equal('superseded')
      const page = await scenario.service.call('GET', `${late.checkout_url}/paid`)
      expect(textOf(page)).to.include('could not be applied to your subscription').and.to.include('Your money is safe.')
      expect(textOf(page)).not.to.include('Valid until')
      expect(page.text, 'time to read it').not.to.include('http-equiv="refresh"')
    })

    it('is the page of a one-time purchase too, without a period', async () => {
      const book = await scenario.checkout({ mode: 'payment', plan_ref: 'audio-book', amount: 50_000, currency: 'VND' })
      await scenario.service.call('GET', `${book.checkout_url}/bank`)
      await transfer(scenario, book.transaction_id, 50_000)
      const text = textOf(await scenario.service.call('GET', `${book.checkout_url}/paid`))
      expect(text).to.match(
        /Payment received ₫50,000 For audio-book Paid 1 March 2026, 10:00 UTC Method Bank transfer Reference PG\w+ Back to Reader/,
      )
    })
  })

  it('is over, and not paid, once an operator gave back the part that came', async () => {
    await get('/bank')
    await transfer(scenario, open.transaction_id, 60_000)
    const refund = { action: 'refund', note: 'changed her mind', reference: 'FT-BACK' } as const
    await resolveTransaction(scenario.service.ctx, operator('mai'), { transactionId: open.transaction_id, ...refund })
    for (const path of ['', '/bank', '/qr.svg', '/qr.png']) {
      const page = await get(path)
      expect([page.status, page.headers['location']], path).to.deep.equal([410, undefined])
      expect(textOf(page)).not.to.include('Your money is safe')
    }
    expect((await get('/status')).body).to.deep.equal({ status: 'pending', expired: true, redirect_url: null })
  })

  it('is 404 for unknown tokens, as is the QR code', async () => {
    for (const path of ['/bank', '/qr.svg', '/qr.png']) {
      expect((await scenario.service.call('GET', UNKNOWN + path)).status, path).to.equal(404)
    }
  })

  it('is refused with 400 if the payment cannot be made by bank transfer', async () => {
    const dollars = await scenario.checkout({ mode: 'payment', plan_ref: 'book', amount: 500, currency: 'USD' })
    const chosen = await scenario.checkout({ price_id: priceId, payment_method: 'test', external_ref: 'user-2' })
    for (const { checkout_url } of [dollars, chosen]) {
      for (const path of ['/bank', '/qr.svg', '/qr.png']) {
        const page = await scenario.service.call('GET', `${checkout_url}${path}`)
        expect(page.status, path).to.equal(400)
        expect(textOf(page)).to.include('This payment method is not available')
        expect(attributes(page, 'a', 'href')).to.include(new URL(checkout_url).pathname)
      }
      const asked = await scenario.service.call('GET', `${checkout_url}/bank`, {
        headers: { Accept: 'application/json' },
      })
      expect(asked.body.error.code).to.equal('payment_method_unavailable')
    }
  })

  it('stays open to a payer who has it when the method is disabled, and is offered to nobody else', async () => {
    await get('/bank')
    await disableMethod(scenario.service.ctx, 'tester', scenario.app.app, 'bank_transfer')
    expect((await get('/bank')).status).to.equal(200)
    const next = await scenario.checkout({ price_id: priceId, external_ref: 'user-2' })
    const page = await scenario.service.call('GET', next.checkout_url)
    expect(offeredMethods(page)).not.to.include('bank_transfer')
  })

  it('works without scripts: it loads itself again, has a link to check, and shows no button that needs one', async () => {
    const page = await get('/bank')
    expect(page.text).to.include(
      `<noscript><meta http-equiv="refresh" content="20;url=${new URL(open.checkout_url).pathname}/paid"></noscript>`,
    )
    expect(page.text).to.match(/<noscript><a [^>]*href="\/checkout\/[0-9a-f]{64}\/paid">Check again<\/a><\/noscript>/)
    for (const button of page.text.match(/<button[^>]*data-copy[^>]*>/g) ?? []) expect(button).to.include(' hidden')
  })

  it('notices by the etag of the status that a part of the money has arrived', async () => {
    const page = await get('/bank')
    const tag = async () => (await get('/status')).headers['etag']
    expect(attributes(page, 'div', 'data-seen')).to.deep.equal([await tag()])
    await transfer(scenario, open.transaction_id, 60_000)
    expect(await tag()).not.to.equal(attributes(page, 'div', 'data-seen')[0])
  })

  describe('that is open in another tab', () => {
    const seen = async () => attributes(await get('/bank'), 'div', 'data-seen')
    const tag = async () => (await get('/status')).headers['etag']

    it('notices by the etag that a promotion code has changed the amount', async () => {
      await aPromotion(scenario.service.ctx, scenario.app, { code: 'TET2027', on_page: true })
      const before = await seen()
      const raw = 'promotion_code=TET2027'
      await scenario.service.call('POST', `${open.checkout_url}/promotion`, { headers: FORM, raw })
      expect([await tag()]).not.to.deep.equal(before)
      expect([await tag()]).to.deep.equal(await seen())
    })

    it('notices by the etag that a part of the money was given back', async () => {
      await get('/bank')
      await transfer(scenario, open.transaction_id, 60_000)
      const before = await seen()
      const refund = { action: 'refund', amount: 10_000, note: 'too much', reference: 'FT-BACK' } as const
      await resolveTransaction(scenario.service.ctx, operator('mai'), { transactionId: open.transaction_id, ...refund })
      expect(textOf(await get('/bank'))).to.include('We received ₫50,000 of ₫99,000.')
      expect([await tag()]).not.to.deep.equal(before)
    })

    it('notices by the etag that the rest would not count any more', async () => {
      await get('/bank')
      await transfer(scenario, open.transaction_id, 60_000)
      scenario.at('2026-03-05 11:00:00')
      const before = await seen()
      const gold = await scenario.plan('gold', { ...MONTHLY, amount: 50_000 })
      await scenario.pay(await scenario.checkout({ price_id: gold.prices[0] }))
      expect([await tag()]).not.to.deep.equal(before)
    })
  })

  describe('of a payment by debit that is under way', () => {
    it('leads to the page that says so, and takes no transfers', async () => {
      await debitUnderWay(scenario, open.transaction_id)
      for (const path of ['/bank', '/qr.svg', '/qr.png'])
        expect((await get(path)).headers['location'], path).to.equal(new URL(open.checkout_url).pathname)
      expect(await listChanges(scenario.service.ctx.db, open.transaction_id)).to.deep.equal([])
    })

    it('says so after the link expired, too, and leads to no new link and no transfer of the rest', async () => {
      await get('/bank')
      await debitUnderWay(scenario, open.transaction_id)
      for (const received of [0, 60_000]) {
        if (received > 0) await transfer(scenario, open.transaction_id, received)
        scenario.at('2026-03-01 11:30:00')
        for (const path of ['', '/bank']) {
          const page = await get(path)
          expect([page.status, textOf(page)], path).to.deep.equal([
            410,
            'Skip to content TEST sandbox, no real money R Reader Your payment is being processed. There is nothing more to do. ' +
              'Your bank still has to confirm it, which can take a few days. Back to Reader English Tiếng Việt',
          ])
        }
      }
    })

    it('says that the app decides if the subscription has changed meanwhile', async () => {
      await debitUnderWay(scenario, open.transaction_id)
      scenario.at('2026-03-01 10:10:00')
      const gold = await scenario.plan('gold', { ...MONTHLY, amount: 50_000 })
      await scenario.pay(await scenario.checkout({ price_id: gold.prices[0] }))
      const text = textOf(await get(''))
      expect(text).to.include(
        'Your subscription has changed It has just changed while your payment is being processed.',
      )
      expect(text).to.include('Reader will check the payment and contact you.').and.not.include('get a new one')
    })
  })

  it('asks for nothing more of a part payment after the subscription has changed, in either language', async () => {
    await get('/bank')
    await transfer(scenario, open.transaction_id, 60_000)
    scenario.at('2026-03-01 10:10:00')
    const gold = await scenario.plan('gold', { ...MONTHLY, amount: 50_000 })
    await scenario.pay(await scenario.checkout({ price_id: gold.prices[0] }))
    expect(textOf(await get('')))
      .to.include(
        'We have already received ₫60,000 of ₫99,000. Please contact Reader about the money that has arrived.',
      )
      .and.not.include('Left to pay')
    expect(textOf(await get('?lang=vi')))
      .to.include('Vui lòng liên hệ Reader')
      .and.not.include('Còn phải trả')
  })

  it('promises of an expired link that would not be applied any more only that the app checks a transfer', async () => {
    await get('/bank')
    scenario.at('2026-03-01 10:10:00')
    const gold = await scenario.plan('gold', { ...MONTHLY, amount: 50_000 })
    await scenario.pay(await scenario.checkout({ price_id: gold.prices[0] }))
    scenario.at('2026-03-01 12:00:00')
    const text = textOf(await get(''))
    expect(text).to.include('This payment link has expired Already transferred? Your money is safe. Reader will check')
    expect(text).to.include('get a new link.').and.not.include('It counts')
  })

  it('gives the QR code alone as a PNG picture to keep', async () => {
    const [, , code] = copied(await get('/bank'))
    const picture = await get('/qr.png')
    expect(picture.headers['content-type']).to.equal('image/png')
    expect(picture.headers['content-disposition']).to.equal(`attachment; filename="QR-${code!}.png"`)
    expect(picture.headers['x-content-type-options']).to.equal('nosniff')
  })

  it('gives the QR code alone as an SVG picture', async () => {
    const picture = await get('/qr.svg')
    expect(picture.status).to.equal(200)
    expect(picture.headers['content-type']).to.match(/^image\/svg\+xml/)
    expect(picture.text).to.match(/^<svg [\s\S]*<\/svg>\s*$/)
  })
})
