import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { openBankPage } from '#checkout/open-bank-page.ts'
import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { movePayment } from '#decisions/move-payment.ts'
import { resolveTransaction } from '#decisions/resolve-transaction.ts'
import { hasDueMails } from '#mails/has-due-mails.ts'
import { sendDueReceipts } from '#mails/receipts/send-due-receipts.ts'
import { inTransaction } from '#commands/transaction.ts'
import { apps, updateAppRow } from '#apps/store.ts'
import { dailyMails } from '#mails/limits/store.ts'
import type { PlanWithPrices } from '#plans/store.ts'
import { DAY_MS } from '#shared/time.ts'
import { formatId } from '#shared/ids.ts'
import { listAllocationsOfTransaction, listRefundsOfTransaction, refunds } from '#payments/store.ts'
import { recordRefundAnswer } from '#transactions/record-refund-answer.ts'
import { switchPlan } from '#subscriptions/switch-plan.ts'
import { findTransaction, transactions } from '#transactions/store.ts'
import { receipts } from '#transactions/receipts/store.ts'
import { ACCOUNT, takeTransfers } from '../pages/bank-scenario.ts'
import { BRAND } from '../pages/scenes.ts'
import { changeApp } from '../support/operators.ts'
import { aCheckout, aCustomer, aPlan, LIFETIME, paid, priceId, tokenOf, transferred } from '../support/factories.ts'
import { aScene, type Scene } from '../renewals/scene.ts'

describe('receipts', () => {
  let scene: Scene
  let references: number

  beforeEach(async () => {
    scene = await aScene()
    references = 0
    await changeApp(scene.ctx, 'tester', scene.seller.app, { receipts: true })
  })
  afterEach(() => scene.stop())

  type Whose = { readonly plan?: PlanWithPrices; readonly locale?: string; readonly email?: string }
  const openSession = async ({ plan = scene.plan, ...changes }: Whose = {}) => {
    const customer = await aCustomer(scene.ctx, scene.seller, { locale: 'en', ...changes })
    const seller = { ...scene.seller, app: await scene.app() }
    return aCheckout(scene.ctx, seller, {
      price_id: priceId(plan),
      customer_id: formatId('cus', customer.id),
      external_ref: `user-${customer.id}`,
    })
  }
  const open = async (whose?: Whose): Promise<number> => (await openSession(whose)).transaction_id!
  const pay = (transactionId: number, amount: number) => transferred(scene.ctx, transactionId, amount)
  /** Of a payment on the bank page, a part came by transfer. */
  const partByTransfer = async (whose?: Whose) => {
    await takeTransfers(scene.ctx, scene.seller.app)
    const session = await openSession(whose)
    const { transaction } = await openBankPage(scene.ctx, tokenOf(session))
    await pay(transaction.id, 60_000)
    return { session, transaction }
  }
  const refund = (transactionId: number, amount?: number) =>
    resolveTransaction(scene.ctx, operator('mai'), {
      transactionId,
      action: 'refund',
      note: 'asked',
      reference: `BACK-${(references += 1)}`,
      ...(amount === undefined ? {} : { amount }),
    })
  const subjects = () => scene.inbox.mails.map(({ parsed }) => parsed.subject)
  const sweep = () => sendDueReceipts(scene.ctx)

  it('say what was received, what it bought and until when, once', async () => {
    const transactionId = await open()
    await pay(transactionId, 99_000)
    expect(await hasDueMails(scene.ctx)).to.equal(true)
    await sweep()
    await sweep()
    expect(subjects()).to.deep.equal(['[TEST] Payment received: Premium'])
    const { text, html } = scene.inbox.mails[0]!.parsed
    for (const part of [text, html]) expect(part).to.contain('₫99,000').and.to.contain('1 April 2026')
    expect(text).to.contain(`Reference: ${transactionId}`)
    expect(await hasDueMails(scene.ctx)).to.equal(false)
  })

  it('name the plan that a payment extends, also after a plan switch', async () => {
    const first = await openSession()
    await pay(first.transaction_id!, 99_000)
    const { externalRef, customerId } = (await findTransaction(scene.ctx.db, first.transaction_id!))!
    const again = {
      price_id: priceId(scene.plan),
      customer_id: formatId('cus', customerId!),
      external_ref: externalRef,
    }
    const extension = await aCheckout(scene.ctx, scene.seller, again)
    const gold = await aPlan(scene.ctx, scene.seller, { code: 'gold', name: 'Gold' })
    const scope = { app: await scene.app(), externalRef }
    await perform(scene.ctx, operator('mai'), switchPlan, { price_id: priceId(gold) }, scope)
    await pay(extension.transaction_id!, 99_000)
    await sweep()
    // Sent at the same time, in any order.
    expect(subjects()).to.have.members(['[TEST] Payment received: Premium', '[TEST] Payment received: Gold'])
  })

  it('report each part with what is missing, in the customer’s language, and then the whole payment', async () => {
    const transactionId = await open({ locale: 'vi' })
    await pay(transactionId, 60_000)
    await sweep()
    await pay(transactionId, 39_000)
    await sweep()
    expect(subjects().map((subject) => subject?.replace(/\s/g, ' '))).to.deep.equal([
      '[TEST] Đã nhận một phần thanh toán: còn phải trả 39.000 ₫',
      '[TEST] Đã nhận thanh toán: Premium',
    ])
  })

  it('carry the app’s logo, at the address at which its pages show it', async () => {
    const { ctx, inbox } = scene
    await pay(await open(), 99_000)
    await sweep()
    expect(inbox.mails[0]!.parsed.html).not.to.contain('/logo/')
    await changeApp(ctx, 'tester', await scene.app(), { logo: BRAND.logo })
    const { logo } = (await scene.app()).pageSettings!
    await pay(await open(), 99_000)
    await sweep()
    expect(inbox.mails[1]!.parsed.html).to.contain(`src="${ctx.config.baseUrl}/logo/${logo!}"`)
  })

  it('name in Vietnamese the plan whose payment was refunded', async () => {
    const transactionId = await open({ locale: 'vi' })
    await pay(transactionId, 99_000)
    await refund(transactionId)
    await sweep()
    const texts = scene.inbox.mails.map(({ parsed }) => String(parsed.text).replace(/\s+/g, ' '))
    expect(texts.join()).to.contain('Chúng tôi đã hoàn 99.000 ₫ cho khoản thanh toán gói Premium.')
  })

  it('say where to transfer the rest after a part came by bank transfer', async () => {
    const { transaction } = await partByTransfer()
    await sweep()
    const { text, html } = scene.inbox.mails[0]!.parsed
    for (const part of ['₫39,000', transaction.transferCode!, ACCOUNT.number, ACCOUNT.holder, 'Vietcombank'])
      for (const body of [text, html]) expect(body).to.contain(part)
  })

  const linksTo = (path: string) => new RegExp(`href="http[^"]*/checkout/[0-9a-f]{64}${path}"`)

  for (const [locale, label] of [
    ['en', 'Pay ₫39,000'],
    ['vi', 'Thanh toán 39.000\u00a0₫'],
  ] as const)
    it(`have a button that asks for the rest of a part, on the bank page, also after the link expired: ${locale}`, async () => {
      const { session } = await partByTransfer({ locale })
      scene.ctx.clock.advance('2d')
      await sweep()
      const { text, html } = scene.inbox.mails[0]!.parsed
      expect(html).to.match(linksTo('/bank'))
      expect(String(html).replace(/\s+/g, ' ')).to.match(new RegExp(`>\\s*${label.replace(/\s/g, '\\s')}\\s*</a>`))
      expect(text).to.contain(`${session.checkout_url}/bank`)
    })

  it('lead to the open checkout where a part came by another way, and nowhere once it expired', async () => {
    await pay(await open(), 60_000)
    await sweep()
    expect(scene.inbox.mails[0]!.parsed.html).to.match(linksTo(''))
    await pay(await open(), 60_000)
    scene.ctx.clock.advance('2d')
    await sweep()
    expect(scene.inbox.mails[1]!.parsed.html).not.to.match(linksTo('.*'))
  })

  it('do not ask for more money once the payment can no longer be applied', async () => {
    const { transaction } = await partByTransfer()
    const gold = await aPlan(scene.ctx, scene.seller, { code: 'gold', prices: [LIFETIME] })
    const other = { price_id: priceId(gold), external_ref: transaction.externalRef }
    await paid(scene.ctx, { ...scene.seller, app: await scene.app() }, other)
    await sweep()
    const { text, html } = scene.inbox.mails.find(({ parsed }) => parsed.subject?.includes('Part of'))!.parsed
    expect(html).not.to.match(linksTo('.*'))
    for (const body of [text, html]) expect(body).not.to.contain(ACCOUNT.number)
  })

  it('say that a lifetime subscription never expires', async () => {
    const plan = await aPlan(scene.ctx, scene.seller, { prices: [LIFETIME] })
    await pay(await open({ plan }), LIFETIME.amount)
    await sweep()
    const { text, html } = scene.inbox.mails[0]!.parsed
    for (const body of [text, html]) expect(body).to.contain('Lifetime')
  })

  it('do not mention a part if the rest arrived before the mail was sent', async () => {
    const transactionId = await open()
    await pay(transactionId, 60_000)
    await pay(transactionId, 39_000)
    await sweep()
    expect(subjects()).to.deep.equal(['[TEST] Payment received: Premium'])
  })

  it('of a part are not sent if another part arrives while the mail server is asked to take the mail', async () => {
    const { transaction } = await partByTransfer()
    scene.inbox.beforeGoAhead = async () => {
      scene.inbox.beforeGoAhead = null
      await pay(transaction.id, 20_000)
    }
    await sweep()
    scene.ctx.clock.advance('10m')
    await sweep()
    expect(subjects()).to.deep.equal(['[TEST] Part of your payment received: ₫19,000 left to pay'])
  })

  it('do not ask for the rest if it arrives while the mail server is asked to take the mail', async () => {
    const { transaction } = await partByTransfer()
    scene.inbox.beforeGoAhead = async () => {
      scene.inbox.beforeGoAhead = null
      await pay(transaction.id, 39_000)
    }
    await sweep()
    scene.ctx.clock.advance('10m')
    await sweep()
    expect(subjects()).to.deep.equal(['[TEST] Payment received: Premium'])
    expect(await hasDueMails(scene.ctx)).to.equal(false)
  })

  it('report a part again after the first one was moved away', async () => {
    const [first, other] = [await open(), await open()]
    await pay(first, 60_000)
    await sweep()
    const [{ paymentId } = { paymentId: 0 }] = await listAllocationsOfTransaction(scene.ctx.db, first)
    await movePayment(scene.ctx, operator('mai'), { payment_id: paymentId, transaction_id: other, note: 'asked' })
    await pay(first, 60_000)
    await sweep()
    expect(subjects()).to.deep.equal(Array(3).fill('[TEST] Part of your payment received: ₫39,000 left to pay'))
    await pay(first, 39_000)
    expect((await findTransaction(scene.ctx.db, first))!.resolution).to.equal(null)
  })

  it('report each refund', async () => {
    const transactionId = await open()
    await pay(transactionId, 99_000)
    await refund(transactionId, 40_000)
    await refund(transactionId)
    await sweep()
    expect(subjects()).to.have.members([
      '[TEST] Payment received: Premium',
      '[TEST] Refunded: ₫40,000 for Premium',
      '[TEST] Refunded: ₫59,000 for Premium',
    ])
  })

  it('report one decision to refund once, also where several payments are refunded', async () => {
    const transactionId = await open()
    await pay(transactionId, 60_000)
    await pay(transactionId, 39_000)
    await refund(transactionId)
    await sweep()
    expect(subjects().filter((subject) => subject?.includes('Refunded'))).to.deep.equal([
      '[TEST] Refunded: ₫99,000 for Premium',
    ])
  })

  it('report only refunds that succeeded; a refused one is reported once it is refunded', async () => {
    const transactionId = await open()
    await pay(transactionId, 60_000)
    await pay(transactionId, 39_000)
    await refund(transactionId)
    const parts = await listRefundsOfTransaction(scene.ctx.db, transactionId)
    const refused = parts.find(({ amount }) => amount === 39_000)!
    await scene.ctx.db.update(refunds, { id: refused.id }, { status: 'pending' })
    await sweep()
    expect(subjects(), 'while a part is pending').to.deep.equal(['[TEST] Payment received: Premium'])
    await inTransaction(scene.ctx, (tx) =>
      recordRefundAnswer(tx, refused.id, { status: 'failed', reference: refused.reference, failure: 'closed' }),
    )
    scene.ctx.clock.advance('11m')
    await sweep()
    expect(subjects().at(-1)).to.equal('[TEST] Refunded: ₫60,000 for Premium')
    await pay(transactionId, 39_000)
    await refund(transactionId)
    await sweep()
    expect(subjects().slice(2), 'as much as was refunded in all before').to.deep.equal([
      '[TEST] Refunded: ₫39,000 for Premium',
    ])
  })

  it('are not sent by default, nor after they were turned off', async () => {
    const transactionId = await open()
    await pay(transactionId, 60_000)
    await changeApp(scene.ctx, 'tester', await scene.app(), { receipts: false })
    await sweep()
    expect(subjects(), 'of a part that came before').to.deep.equal([])
    await pay(transactionId, 39_000)
    await sweep()
    expect(subjects()).to.deep.equal([])
    expect(await hasDueMails(scene.ctx)).to.equal(false)
  })

  it('are created once if a payment is reported twice', async () => {
    const transactionId = await open()
    for (let time = 0; time < 2; time += 1)
      await transferred(scene.ctx, transactionId, 99_000, { reference: 'FT-same' })
    await sweep()
    expect(subjects()).to.have.length(1)
  })

  it('are dated by the app’s own clock', async () => {
    await inTransaction(scene.ctx, (tx) => updateAppRow(tx, scene.seller.app.id, { clockOffsetMs: 60 * DAY_MS }))
    await pay(await open(), 99_000)
    await sweep()
    expect(scene.inbox.mails[0]?.parsed.text).to.contain('Date: 30 April 2026').and.to.contain('30 May 2026')
  })

  it('go out though another one cannot be written, which is tried again later', async () => {
    const id = await open()
    await pay(id, 99_000)
    await scene.ctx.db.update(transactions, { id }, { currency: '??' })
    await pay(await open(), 99_000)
    await sweep()
    expect(subjects()).to.have.length(1)
    await scene.ctx.db.update(transactions, { id }, { currency: 'VND' })
    scene.ctx.clock.advance('1h')
    await sweep()
    expect(subjects()).to.have.length(2)
  })

  const count = (mails: number) =>
    scene.ctx.db.insert(dailyMails, { appId: scene.seller.app.id, day: '2026-03-01', mails })

  it('of a sandbox app count towards its daily limit of 200 mails, and are dropped beyond it', async () => {
    await count(198)
    for (let made = 0; made < 7; made += 1) await pay(await open(), 99_000)
    await sweep()
    expect(subjects()).to.have.length(2)
    expect(await scene.counted()).to.deep.equal([['2026-03-01', 200]])
    const rows = await scene.ctx.db.all(receipts, '')
    expect(rows.filter(({ status }) => status === 'sent')).to.have.length(2)
    expect(rows.filter(({ status }) => status === 'dropped').map(({ lastError }) => lastError)).to.deep.equal(
      Array(5).fill('the sandbox app has reached its daily limit of mails'),
    )
    await pay(await open(), 99_000)
    const seen = scene.inbox.messagesSeen
    await sweep()
    expect(scene.inbox.messagesSeen, 'a sweep that begins at the limit calls no mail server').to.equal(seen)
    scene.ctx.clock.set('2026-03-02 00:00:00')
    await sweep()
    expect(subjects(), 'a dropped receipt is not sent the next day').to.have.length(2)
    await pay(await open(), 99_000)
    await sweep()
    expect(subjects()).to.have.length(3)
    expect(await scene.counted()).to.deep.include(['2026-03-02', 1])
  })

  it('of a live app have no daily limit: each is about money that came or went back', async () => {
    await count(199)
    await scene.ctx.db.update(apps, { id: scene.seller.app.id }, { isSandbox: false })
    for (let made = 0; made < 3; made += 1) await pay(await open(), 99_000)
    await sweep()
    expect(subjects()).to.have.length(3)
    expect(await scene.counted()).to.deep.equal([['2026-03-01', 199]])
  })
})
