import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { expect } from 'chai'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { paymentMethods } from '#apps/store.ts'
import { changeApp, enableMethod } from '../support/operators.ts'
import { aPromotion, MONTHLY } from '../support/factories.ts'
import type { Scenario } from '../support/scenario.ts'
import { startStripePeer } from '../support/stripe-peer.ts'
import { until } from '../support/until.ts'
import { decodeVietQr } from '../bank-accounts/decode-vietqr.ts'
import { ACCOUNT, debitUnderWay, startBankScenario, transfer } from './bank-scenario.ts'
import {
  artifact,
  DESKTOP,
  startBrowser,
  startSellerSite,
  takePicture,
  visit,
  type SellerSite,
  type Visit,
} from './browser.ts'

const STRIPE_KEY = 'sk_test_browser'
const VIETCOMBANK = '970436'

/** The text in a picture of a QR code, as an independent reader sees it. */
function scan(picture: Buffer, name: string): string {
  const path = artifact(name)
  writeFileSync(path, picture)
  return scanFile(path)
}

function scanFile(path: string): string {
  return execFileSync('zbarimg', ['-q', '--raw', path], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim()
}

describe('hosted pages in a browser', () => {
  let browser: Browser
  let seller: SellerSite
  let scenario: Scenario
  let priceId: string
  let open: { checkout_url: string; transaction_id: number }
  let stops: (() => Promise<void>)[]

  before(async () => {
    browser = await startBrowser()
    seller = await startSellerSite()
  })
  after(async () => {
    seller.stop()
    await browser.close()
  })
  beforeEach(async () => {
    stops = []
    scenario = await startBankScenario({ name: 'Reader' })
    priceId = (await scenario.plan('premium', MONTHLY)).prices[0]!
    open = await scenario.checkout({
      price_id: priceId,
      success_url: `${seller.url}/ok`,
      cancel_url: `${seller.url}/no`,
    })
  })
  afterEach(async () => {
    for (const stop of stops) await stop()
    await scenario.service.stop()
  })

  const enter = async (
    url: string,
    options: BrowserContextOptions = {},
    before: (page: Page) => Promise<void> = () => Promise.resolve(),
  ): Promise<Visit> => {
    const visitor = await visit(browser, [scenario.service.url, seller.url], options)
    stops.push(() => visitor.end())
    await before(visitor.page)
    await visitor.page.goto(url)
    return visitor
  }
  /** What the page shows beside the code, to be typed manually. */
  const printed = async (page: Page) => {
    const texts = await page.locator('.fact dd').allInnerTexts()
    return { number: texts[1]!, amount: Number(texts[3]!.replace(/\D/g, '')), purpose: texts[4]! }
  }

  /** Lets the page poll at once, as when its tab comes to the front. */
  const look = (page: Page) => page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)

  describe('without scripts', () => {
    it('take a payment from the checkout to the seller', async () => {
      const { page } = await enter(open.checkout_url, { javaScriptEnabled: false })
      await page.getByRole('button', { name: 'Test payment' }).click()
      await page.waitForURL(`${seller.url}/ok`)
      expect((await scenario.transaction(open.transaction_id)).status).to.equal('completed')
    })

    it('take a bank transfer from the checkout to the seller', async () => {
      const { page, complaints } = await enter(open.checkout_url, { javaScriptEnabled: false, locale: 'vi' })
      await page.getByRole('button', { name: 'Chuyển khoản ngân hàng' }).click()
      await page.waitForURL(`${open.checkout_url}/bank`)
      expect(await page.locator('.copy').first().isVisible()).to.equal(false)
      await transfer(scenario, open.transaction_id, 60_000)
      await page.getByRole('link', { name: 'Kiểm tra lại' }).click()
      await page.getByText('Còn phải trả', { exact: true }).waitFor()
      await transfer(scenario, open.transaction_id, 39_000)
      await page.getByRole('link', { name: 'Kiểm tra lại' }).click()
      await page.getByRole('heading', { name: 'Đã nhận thanh toán' }).waitFor()
      await page.waitForURL(`${seller.url}/ok`)
      expect(complaints).to.deep.equal([])
    })

    it("follow the provider's redirect to its own page", async () => {
      const stripe = await startStripePeer(scenario.service.ctx.clock, [STRIPE_KEY])
      stops.push(() => stripe.stop())
      Object.assign(scenario.service.ctx.config, { stripeApiBase: stripe.base })
      const credentials = { secretKey: STRIPE_KEY, webhookSecret: 'whsec_1' }
      await enableMethod(scenario.service.ctx, 'tester', scenario.app.app, 'card', credentials)
      const { page, complaints } = await enter(open.checkout_url, { javaScriptEnabled: false })
      const asked = page.waitForRequest((request) => request.url().startsWith('https://checkout.stripe.com/'), {
        timeout: 10_000,
      })
      await Promise.all([asked, page.getByRole('button', { name: 'International card' }).click()])
      expect(complaints.join()).not.to.include('form-action')
    })

    it('lead back from the page of an error', async () => {
      const { page } = await enter(open.checkout_url, { javaScriptEnabled: false })
      await scenario.service.ctx.db.update(paymentMethods, { method: 'test' }, { isEnabled: false })
      await page.getByRole('button', { name: 'Test payment' }).click()
      await page.getByRole('heading', { name: 'This payment method is not available' }).waitFor()
      await page.getByRole('link', { name: 'Back to the payment page' }).click()
      await page.waitForURL(open.checkout_url)
      expect(await page.getByRole('button', { name: 'Bank transfer' }).isVisible()).to.equal(true)
    })
  })

  describe('with scripts', () => {
    it('lead from the bank page to success_url once the transfers add up, and show a part at once', async () => {
      const { page, complaints, outside } = await enter(`${open.checkout_url}/bank`)
      await transfer(scenario, open.transaction_id, 60_000)
      await look(page)
      await page.getByText('Left to pay:').waitFor()
      await transfer(scenario, open.transaction_id, 39_000)
      await page.getByRole('heading', { name: 'Payment received' }).waitFor()
      await page.waitForURL(`${seller.url}/ok`)
      expect([complaints, outside]).to.deep.equal([[], []])
    })

    it('count down, and become the page of an expired link', async () => {
      const start = Date.now()
      scenario.at('2026-03-01 10:59:57')
      const { page } = await enter(open.checkout_url)
      expect(await page.locator('.timer').innerText()).to.match(/^00:0[23]$/)
      scenario.at('2026-03-01 11:00:00')
      await page.getByRole('heading', { name: 'This payment link has expired' }).waitFor()
      expect(Date.now() - start).to.be.greaterThan(2000)
    })

    it('send no form again at the end of the countdown', async () => {
      await aPromotion(scenario.service.ctx, scenario.app, { code: 'TET2027', on_page: true })
      scenario.at('2026-03-01 10:59:55')
      const { page } = await enter(open.checkout_url)
      await page.getByText('I have a promotion code').click()
      await page.getByLabel('Promotion code').fill('WRONG')
      await page.getByRole('button', { name: 'Apply' }).click()
      await page.getByRole('alert').waitFor()
      const loaded: string[] = []
      page.on('request', (request) => {
        if (request.isNavigationRequest()) loaded.push(request.method())
      })
      scenario.at('2026-03-01 11:00:00')
      await page.getByRole('heading', { name: 'This payment link has expired' }).waitFor()
      expect(loaded).to.include('GET').and.not.include('POST')
    })

    it('show the end of a link also if the clock of a sandbox app was moved', async () => {
      const { page } = await enter(`${open.checkout_url}/bank`)
      scenario.at('2026-03-01 11:00:00')
      await look(page)
      await page.getByRole('heading', { name: 'This payment link has expired' }).waitFor()
      await page.getByText('Your money is safe.').waitFor()
    })

    it('keep the bank page of a part payment after the end, without loading it again and again', async () => {
      const { page } = await enter(`${open.checkout_url}/bank`)
      await transfer(scenario, open.transaction_id, 60_000)
      scenario.at('2026-03-01 11:00:00')
      await look(page)
      await page.getByText('This link has expired, but the rest still counts when it arrives.').waitFor()
      await page.waitForLoadState('load')
      await page.evaluate("document.body.dataset.loadedOnce = 'yes'")
      for (let time = 0; time < 2; time += 1) {
        const asked = page.waitForResponse(/\/status$/)
        await look(page)
        await (await asked).finished()
      }
      expect(await page.getAttribute('body[data-loaded-once]', 'data-loaded-once')).to.equal('yes')
      await transfer(scenario, open.transaction_id, 39_000)
      await look(page)
      await page.getByRole('heading', { name: 'Payment received' }).waitFor()
    })

    it('lead from a renewal whose payment is under way to the page of what was paid, without loading it again and again', async () => {
      await scenario.pay(open)
      scenario.at('2026-03-30 10:00:00')
      const url = `${scenario.service.url}/renew/${await scenario.renewalToken()}`
      const { page, complaints } = await enter(url)
      await page.getByRole('button', { name: 'Bank transfer' }).click()
      await page.waitForURL(/\/bank$/)
      const [renewal] = (await scenario.seller.get('/api/v1/transactions')).body.data
      await debitUnderWay(scenario, renewal!.transaction_id)
      scenario.at('2026-03-30 12:00:00')
      await page.goto(url)
      await page.getByText('Your payment is being processed.').waitFor()
      await page.evaluate("document.body.dataset.loadedOnce = 'yes'")
      const asked = page.waitForResponse(/\/status$/)
      await look(page)
      await (await asked).finished()
      expect(await page.getAttribute('body[data-loaded-once]', 'data-loaded-once')).to.equal('yes')
      await transfer(scenario, renewal!.transaction_id, 99_000)
      await look(page)
      await page.getByRole('heading', { name: 'Payment received' }).waitFor()
      expect(complaints).to.deep.equal([])
    })

    it('copy account number, amount and transfer code as they must be typed', async () => {
      const { page } = await enter(`${open.checkout_url}/bank`, {
        permissions: ['clipboard-read', 'clipboard-write'],
      })
      const { purpose } = await printed(page)
      for (const [name, text] of [
        ['Copy: Account number', ACCOUNT.number],
        ['Copy: Amount', '99000'],
        ['Copy: Transfer note (nội dung)', purpose],
      ] as const) {
        const button = page.getByRole('button', { name })
        await button.click()
        await button.getByText('Copied').waitFor()
        expect(await page.evaluate('navigator.clipboard.readText()')).to.equal(text)
        expect(await page.locator('[data-announce]').innerText()).to.include(text)
      }
    })

    it('copy also where the browser refuses its clipboard', async () => {
      const { page } = await enter(`${open.checkout_url}/bank`)
      const { purpose } = await printed(page)
      await page.evaluate("navigator.clipboard.writeText = () => Promise.reject(new Error('refused'))")
      const button = page.getByRole('button', { name: 'Copy: Transfer note (nội dung)' })
      await button.click()
      await button.getByText('Copied').waitFor()
      await page.evaluate("document.body.append(document.createElement('textarea'))")
      await page.locator('textarea').focus()
      await page.keyboard.press('Control+V')
      expect(await page.locator('textarea').inputValue()).to.equal(purpose)
    })

    it('do not shift when a copy button reports that it has copied', async () => {
      const { page } = await enter(`${open.checkout_url}/bank`, { locale: 'vi' })
      const button = page.locator('.typed .copy').last()
      const before = [await button.boundingBox(), await page.locator('.typed').boundingBox()]
      await button.click()
      await button.getByText('Đã chép').waitFor()
      expect([await button.boundingBox(), await page.locator('.typed').boundingBox()]).to.deep.equal(before)
    })

    for (const javaScriptEnabled of [true, false])
      it(`save the QR code at one tap as a PNG picture, which banking apps read, ${javaScriptEnabled ? 'with' : 'without'} scripts`, async () => {
        const { page, complaints } = await enter(`${open.checkout_url}/bank`, { javaScriptEnabled })
        const download = page.waitForEvent('download')
        await page.getByRole('link', { name: 'Save QR image' }).click()
        const file = await download
        const shown = await printed(page)
        expect(file.suggestedFilename()).to.equal(`QR-${shown.purpose}.png`)
        const path = artifact('saved-qr.png')
        await file.saveAs(path)
        expect(decodeVietQr(scanFile(path))).to.include({ ...shown, bin: VIETCOMBANK })
        expect(complaints).to.deep.equal([])
      })

    it('say after three minutes of waiting how long it takes, to keep the receipt, and whom to ask with which code', async () => {
      await changeApp(scenario.service.ctx, 'tester', scenario.app.app, { support: 'help@shop.example' })
      const { page } = await enter(`${open.checkout_url}/bank`, { locale: 'vi' }, (opened) => opened.clock.install())
      const { purpose } = await printed(page)
      const state = page.locator('.waiting')
      // The page's clock goes on by itself, on a busy machine for some seconds.
      await page.clock.fastForward('02:30')
      const said = async () => (await state.innerText()).replace(/\s+/g, ' ')
      expect(await said()).to.include('Đang chờ bạn chuyển khoản')
      await page.clock.fastForward('00:30')
      await page.getByText('Đã chuyển mà chưa thấy cập nhật?').waitFor()
      expect(await said()).to.include(`Thường mất 1–5 phút. Giữ lại biên lai và liên hệ Reader, mã ${purpose}.`)
      expect(await state.getByRole('link').getAttribute('href')).to.equal(`mailto:help@shop.example?subject=${purpose}`)
      await transfer(scenario, open.transaction_id, 99_000)
      await look(page)
      await page.getByRole('heading', { name: 'Đã nhận thanh toán' }).waitFor()
    })

    it('keep amount and note in view on a phone, wherever the page is scrolled', async () => {
      const { page } = await enter(`${open.checkout_url}/bank`, { isMobile: true, hasTouch: true })
      const height = await page.evaluate<number>('document.documentElement.scrollHeight')
      for (const y of [0, height / 3, height / 2, height]) {
        await page.evaluate(`scrollTo(0, ${y})`)
        const box = (await page.locator('.typed').boundingBox()) ?? expect.fail('no amount and note')
        expect(box.y, String(y)).to.be.at.least(0)
        expect(box.y + box.height, String(y)).to.be.at.most(844)
      }
    })

    it('let a form be sent once, and again after coming back', async () => {
      const { page } = await enter(open.checkout_url)
      const button = page.getByRole('button', { name: 'Bank transfer' })
      await button.click()
      await page.waitForURL(`${open.checkout_url}/bank`)
      await page.goBack()
      expect(await button.isEnabled()).to.equal(true)
    })
  })

  it('on a phone the bank page shows amount, code and state without scrolling, and opens banking apps', async () => {
    const phone = { isMobile: true, hasTouch: true, locale: 'vi' }
    const { page, outside } = await enter(`${open.checkout_url}/bank`, phone)
    for (const shown of ['.bank-sum .amount', '.typed .exact', '.typed .copy >> nth=1', '.waiting-state']) {
      const box = (await page.locator(shown).boundingBox()) ?? expect.fail(`${shown} is not there`)
      expect(box.y + box.height, shown).to.be.at.most(844)
    }
    await page.getByText('Mở ứng dụng ngân hàng').click()
    const links = await page.evaluate<string[]>(
      `[...document.querySelectorAll('.bank-apps a')].map((link) => link.href)`,
    )
    expect(links).to.have.length(10)
    const { purpose } = await printed(page)
    const asked = new URL(links.find((link) => link.includes('app=vcb'))!)
    expect(asked.origin + asked.pathname).to.equal('https://dl.vietqr.io/pay')
    expect(Object.fromEntries(asked.searchParams)).to.deep.equal({
      app: 'vcb',
      ba: `${ACCOUNT.number}@vcb`,
      am: '99000',
      tn: purpose,
      bn: ACCOUNT.holder,
      url: seller.url,
    })
    expect(asked.search).not.to.include('+')
    expect(links.join()).not.to.include(new URL(open.checkout_url).pathname)
    expect(outside).to.deep.equal([])
  })

  it('a desktop, and an app that turned them off, have no links to banking apps', async () => {
    const desktop = await enter(`${open.checkout_url}/bank`, { viewport: DESKTOP })
    expect(await desktop.page.locator('.bank-apps').isVisible()).to.equal(false)
    await changeApp(scenario.service.ctx, 'tester', scenario.app.app, { bank_app_links: false })
    const { page } = await enter(`${open.checkout_url}/bank`, { isMobile: true, hasTouch: true })
    expect(await page.locator('.bank-apps').count()).to.equal(0)
    expect(await page.content()).not.to.include('vietqr.io')
  })

  for (const colorScheme of ['light', 'dark'] as const) {
    it(`show a QR code with the data that is printed beside it, in ${colorScheme} colours`, async () => {
      for (const [received, amount] of [
        [0, 99_000],
        [60_000, 39_000],
      ] as const) {
        if (received > 0) await transfer(scenario, open.transaction_id, received)
        // A page of its own: one that is open reloads itself when a part arrives.
        const { page } = await enter(`${open.checkout_url}/bank`, { colorScheme })
        const shown = await printed(page)
        expect(shown).to.include({ number: ACCOUNT.number, amount })
        const text = scan(await takePicture(page.locator('.qr img')), `qr-${colorScheme}-${amount}.png`)
        expect(decodeVietQr(text)).to.deep.equal({ ...shown, bin: VIETCOMBANK })
      }
    })
  }

  it('run only their own scripts, styles and requests', async () => {
    const { page, complaints, outside } = await enter(open.checkout_url)
    await page.evaluate(`{
      const script = document.createElement('script')
      script.textContent = 'window.intruder = true'
      const image = new Image()
      image.src = 'https://elsewhere.example/pixel'
      document.body.insertAdjacentHTML('beforeend', '<p style="color: red" onclick="window.intruder = true">red</p>')
      document.body.append(script, image)
      document.querySelector('p[onclick]').click()
      fetch('https://elsewhere.example/').catch(() => undefined)
    }`)
    const blocked = () => complaints.filter((text) => text.includes('Content Security Policy'))
    await until(() => blocked().length >= 5)
    expect(await page.evaluate('window.intruder')).to.equal(undefined)
    expect(await page.evaluate(`getComputedStyle(document.querySelector('p[onclick]')).color`)).not.to.equal(
      'rgb(255, 0, 0)',
    )
    expect(outside).to.deep.equal([])
  })

  it('submit their form only to where a payment leads', async () => {
    const { page, complaints, outside } = await enter(`${open.checkout_url}/bank`)
    await page.evaluate(`{
      const form = document.createElement('form')
      form.action = 'https://elsewhere.example/'
      form.method = 'post'
      document.body.append(form)
      form.submit()
    }`)
    await until(() => complaints.join().includes('form-action'))
    expect(outside).to.deep.equal([])
  })
})
