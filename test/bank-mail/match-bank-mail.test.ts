import { aCheckout, aPlan, MONTHLY, paid, priceId, SERVER, tokenOf, YEARLY } from '../support/factories.ts'
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { getApp } from '#apps/store.ts'
import { chooseMethod } from '#checkout/choose-method.ts'
import { openBankPage } from '#checkout/open-bank-page.ts'
import { fitOf } from '#bank-mail/fits.ts'
import { listBankMails } from '#bank-mail/list-bank-mails.ts'
import { matchBankMail, previewMatch } from '#bank-mail/match-bank-mail.ts'
import { newTransferCode } from '#providers/bank-transfer/transfer-code.ts'
import { bankMails } from '#bank-mail/store.ts'
import { listAuditEntries } from '#commands/store.ts'
import type { Context } from '#context.ts'
import { movePayment } from '#decisions/move-payment.ts'
import { refundPayment } from '#decisions/refund-payment.ts'
import { listPaymentRows } from '#payments/lists/store.ts'
import { advanceTestClock } from '#test-clock/advance-test-clock.ts'
import { readReview } from '#review/read-review.ts'
import { sha256Hex } from '#shared/crypto.ts'
import { formatTimestamp } from '#shared/time.ts'
import { bankMail, genuineMail, OUR_MX, receivedBy, signed, TRANSFER, type Transfer } from '../support/bank-mails.ts'
import { aBankMail } from '../cli/states.ts'
import { aBankShop, aPayment, aTransferApp, transferFor, type BankShop } from './bank-shop.ts'
import { addBankAccount, assignBankAccount } from '../support/operators.ts'
import { operator } from '#commands/caller.ts'

let movements = 0

function transfer(changes: Partial<Transfer> = {}): Transfer {
  movements += 1
  return { ...TRANSFER, movement: 800_000_000 + movements, ...changes }
}

describe('unmatched money', () => {
  let shop: BankShop
  const open = async (...options: Parameters<typeof aBankShop>) => (shop = await aBankShop(...options))
  const unmatched = async () => (await listBankMails(shop.service.ctx, { unmatched: true })).rows
  const match = (input: object) => matchBankMail(shop.service.ctx, operator('linh'), { note: 'payer called', ...input })
  const failureOf = (input: object) => match(input).catch((error: unknown) => error)

  afterEach(() => shop.service.stop())

  it('is listed with what is kept of its mail, and the payments it may be meant for', async () => {
    await open()
    const [exact, more] = [await shop.pay(), await shop.pay({ amount: 120_000 })]
    await shop.relay(await genuineMail('ACB', transfer(), { 'Message-ID': '<statement-1@acb.com.vn>' }))
    const mails = await unmatched()
    expect(mails).to.have.lengthOf(1)
    expect(mails[0]).to.deep.equal({
      id: mails[0]!.id,
      app_id: null,
      received_at: formatTimestamp(shop.service.ctx.clock.now()),
      message_id: '<statement-1@acb.com.vn>',
      bank: 'ACB',
      amount: TRANSFER.amount,
      transfer_code: null,
      status: 'ignored',
      reason: 'no_transfer_code',
      review: 'credit',
      transaction_id: null,
      suggestions: [exact, more].map((payment) => ({
        transaction_id: payment.id,
        app_id: shop.app.app.id,
        external_ref: 'user-1',
        amount_due: payment.amount,
        transfer_code: payment.transferCode,
        created_at: formatTimestamp(payment.createdAt),
      })),
    })
  })

  it('is what came with an unknown code, for a payment that takes no transfers, or on an account that is not the app’s', async () => {
    await open()
    const closed = await shop.pay({ closed: true })
    await shop.relay(await genuineMail('ACB', transfer({ content: newTransferCode() })))
    await shop.relay(await genuineMail('ACB', transfer({ content: closed.transferCode! })))
    expect((await unmatched()).map(({ reason }) => reason)).to.have.members([
      'unknown_transaction',
      'not_bank_transfer_transaction',
    ])
  })

  it('is not what was booked, what is no bank’s mail, what is not trusted, or reports no money', async () => {
    await open()
    const payment = await shop.pay()
    await shop.relay(await genuineMail('ACB', transfer({ content: payment.transferCode! })))
    await shop.relay('Subject: x\r\n\r\nx')
    await shop.relay(await receivedBy(OUR_MX, bankMail('ACB', transfer())))
    const news = bankMail('ACB', transfer(), { From: 'news@acb.com.vn' }, 'news')
    await shop.relay(await receivedBy(OUR_MX, await signed(news, 'acb.com.vn')))
    expect(await unmatched()).to.deep.equal([])
    expect((await listBankMails(shop.service.ctx)).rows).to.have.lengthOf(4)
  })

  it('is, outside development, only what came to an account’s secret address about that account', async () => {
    await open('ACB', { BILLING_ENV: 'production' })
    await shop.relay(await genuineMail('ACB', transfer()))
    await shop.relay(await genuineMail('ACB', transfer()), 'bank+0000000000@pay.example')
    await shop.relay(await genuineMail('ACB', transfer({ account: '66666666' })))
    await shop.relay(await genuineMail('TIMO', transfer()))
    const mails = await unmatched()
    expect(mails).to.have.lengthOf(1)
    const others = (await listBankMails(shop.service.ctx)).rows.filter(({ id }) => id !== mails[0]!.id)
    const payment = await shop.pay()
    for (const { id } of others)
      expect(await failureOf({ id, transactionId: payment.id })).to.have.property('field', 'id')
  })

  it('is booked for the payment that an operator names, with a reason', async () => {
    await open()
    const payment = await shop.pay()
    await shop.relay(await genuineMail('ACB', transfer()))
    const [mail] = await unmatched()
    expect(await match({ id: mail!.id, transactionId: payment.id })).to.deep.equal({
      status: 'processed',
      transactionId: payment.id,
    })
    expect(await shop.transaction(payment.id)).to.include({ status: 'completed', providerCode: 'bank_transfer' })
    expect(await unmatched()).to.deep.equal([])
    const [entry] = await listAuditEntries(shop.service.ctx.db, { limit: 1 })
    expect(entry).to.deep.include({
      actor: 'linh',
      action: 'bank-mail.match',
      subject: `bank mail ${mail!.id}`,
      reason: 'payer called',
    })
  })

  it('may be less than the payment asks for', async () => {
    await open()
    const payment = await shop.pay()
    await shop.relay(await genuineMail('ACB', transfer({ amount: 50_000 })))
    const [mail] = await unmatched()
    expect(await match({ id: mail!.id, transactionId: payment.id })).to.include({ status: 'underpaid' })
  })

  it('is booked once: not again by an operator, and not by the same mail coming again', async () => {
    await open()
    const [payment, other] = [await shop.pay(), await shop.pay()]
    const mail = await genuineMail('ACB', transfer({ content: newTransferCode() }))
    await shop.relay(mail)
    await shop.relay(mail)
    const [second, first] = await unmatched()
    await match({ id: first!.id, transactionId: payment.id })
    expect(await failureOf({ id: first!.id, transactionId: other.id })).to.have.property('field', 'id')
    expect(await failureOf({ id: second!.id, transactionId: other.id })).to.have.property('code', 'invalid_request')
    expect(await shop.transaction(other.id)).to.include({ status: 'pending', amountReceived: 0 })
  })

  for (const [how, take] of [
    [
      'moved',
      (ctx: Context, order: object, transaction_id: number) =>
        movePayment(ctx, operator('linh'), { ...order, transaction_id }),
    ],
    [
      'refunded',
      (ctx: Context, order: object) => refundPayment(ctx, operator('linh'), { ...order, reference: 'FT-BACK-1' }),
    ],
  ] as const)
    it(`waits as a payment, with its rest, once a part was ${how}, also if its mail comes again`, async () => {
      await open()
      const { ctx } = shop.service
      const [payment, other] = [await shop.pay(), await shop.pay()]
      await shop.relay(await genuineMail('ACB', transfer({ content: payment.transferCode!, amount: 99_000 })))
      const noCode = await genuineMail('ACB', transfer({ amount: 99_000 }))
      await shop.relay(noCode)
      const [mail] = await unmatched()
      const [waiting] = await listPaymentRows(ctx.db, { appId: null, waiting: true, after: null, limit: 1 })
      await take(ctx, { payment_id: waiting!.id, amount: 60_000, note: 'he called' }, other.id)
      await shop.relay(noCode)
      expect(await unmatched()).to.deep.equal([])
      const items = (await readReview(ctx, null)).filter(({ kind }) => kind !== 'flagged_payment')
      expect(items.map(({ kind, id, amount, next_step }) => [kind, id, amount, next_step])).to.deep.equal([
        ['unapplied_payment', waiting!.id, 39_000, `billing-cli payment show ${waiting!.id}`],
      ])
      const refused = await failureOf({ id: mail!.id, transactionId: payment.id })
      expect(refused)
        .to.have.property('message')
        .that.includes(
          how === 'moved'
            ? `it is booked for transaction ${other.id}; 'payment move ${waiting!.id}' books it elsewhere`
            : `'payment show ${waiting!.id}' says where it is`,
        )
    })

  it('is offered with no command that matches it if its mail does not prove it', async () => {
    await open()
    const payment = await shop.pay()
    const quoted = bankMail('ACB', transferFor(payment), { From: 'help@acb.com.vn' })
    await shop.relay(await receivedBy(OUR_MX, await signed(quoted, 'acb.com.vn')))
    await shop.relay(await genuineMail('ACB', transfer()))
    const [genuine, unproven] = await unmatched()
    expect([genuine, unproven].map((mail) => [mail!.review, mail!.suggestions.length])).to.deep.equal([
      ['credit', 1],
      ['unknown_sender', 1],
    ])
    expect([fitOf(genuine!)?.transaction_id, fitOf(unproven!)]).to.deep.equal([payment.id, null])
  })

  it('counts from when its first mail came, though a later copy is matched, or has come to the right address', async () => {
    await open('ACB', { BILLING_ENV: 'production' })
    const { ctx } = shop.service
    const app = { ...shop.app, app: await getApp(ctx.db, shop.app.app.id) }
    const plan = await aPlan(ctx, app, { prices: [MONTHLY] })
    const former = await addBankAccount(ctx, 'tester', {
      bank: 'ACB',
      number: TRANSFER.account,
      holder: 'NGUYEN VAN A',
    })
    const paidBy = async (external_ref: string) => {
      const checkout = await aCheckout(ctx, app, { price_id: priceId(plan), external_ref })
      await chooseMethod(ctx, tokenOf(checkout), 'bank_transfer')
      return openBankPage(ctx, tokenOf(checkout))
    }
    const [first, second] = [await paidBy('user-1'), await paidBy('user-2')]
    const [noCode, withCode] = [transfer(), transfer({ content: second.transaction.transferCode! })]
    await shop.relay(await genuineMail('ACB', noCode))
    await shop.relay(await genuineMail('ACB', withCode), `bank+${former.forwardCode}@pay.example`)
    ctx.clock.advance('2d')
    await shop.relay(await genuineMail('ACB', noCode))
    const copy = (await unmatched()).find(({ transfer_code: code }) => code === null)
    await match({ id: copy!.id, transactionId: first.transaction.id })
    expect((await shop.relay(await genuineMail('ACB', withCode))).body).to.deep.equal({ status: 'processed' })
    for (const ref of ['user-1', 'user-2'])
      expect((await shop.service.seller(app).get(`/api/v1/subscriptions/${ref}`)).body.data, ref).to.include({
        current_period_end: '2026-04-01 10:00:00',
      })
  })

  it('is booked once by two operators at once', async () => {
    await open()
    const [payment, other] = [await shop.pay(), await shop.pay()]
    await shop.relay(await genuineMail('ACB', transfer()))
    const [mail] = await unmatched()
    const outcomes = await Promise.allSettled(
      [payment, other].map(({ id }) => match({ id: mail!.id, transactionId: id })),
    )
    expect(outcomes.map(({ status }) => status).sort()).to.deep.equal(['fulfilled', 'rejected'])
    const received = await Promise.all(
      [payment, other].map(async ({ id }) => (await shop.transaction(id)).amountReceived),
    )
    expect(received.sort()).to.deep.equal([0, TRANSFER.amount].sort())
  })

  it('is not booked for a payment of an app that never used the account it came to, also if the transfer has its code', async () => {
    await open()
    const { ctx } = shop.service
    const other = await aTransferApp(ctx)
    const account = await addBankAccount(ctx, 'tester', { bank: 'ACB', number: '654321', holder: 'B' })
    await assignBankAccount(ctx, 'tester', other.app, account.id)
    const foreign = await aPayment(ctx, other)
    await shop.relay(await genuineMail('ACB', transfer({ content: foreign.transferCode! })))
    const [mail] = await unmatched()
    expect(mail).to.include({ reason: 'bank_account_unavailable', transaction_id: foreign.id })
    const [payment] = await listPaymentRows(ctx.db, { appId: null, waiting: true, after: null, limit: 10 })
    expect(payment, 'the payment').to.include({ appId: shop.app.app.id, bankAccountId: shop.account.id })
    expect(await failureOf({ id: mail!.id, transactionId: foreign.id }))
      .to.have.property('message')
      .that.includes(`never used bank account ${shop.account.id}`)
    expect(await match({ id: mail!.id, transactionId: (await shop.pay()).id })).to.include({ status: 'processed' })
  })

  it('may be booked for a payment of any app that had the account', async () => {
    await open()
    const { ctx } = shop.service
    const account = await addBankAccount(ctx, 'tester', { bank: 'ACB', number: '654321', holder: 'B' })
    await assignBankAccount(ctx, 'tester', shop.app.app, account.id)
    await shop.relay(await genuineMail('ACB', transfer()))
    const [mail] = await unmatched()
    expect(await match({ id: mail!.id, transactionId: (await shop.pay()).id })).to.include({ status: 'processed' })
  })

  it('is not booked for what is not there, or without a reason', async () => {
    await open()
    const payment = await shop.pay()
    await shop.relay(await genuineMail('ACB', transfer()))
    const [mail] = await unmatched()
    expect(await failureOf({ id: 999_999, transactionId: payment.id })).to.have.property('code', 'not_found')
    expect(await failureOf({ id: mail!.id, transactionId: 999_999 })).to.have.property('code', 'not_found')
    expect(await failureOf({ id: mail!.id, transactionId: payment.id, note: '' })).to.have.property('field', 'note')
  })

  it('is listed to the last mail, and strangers’ mails never push a customer’s out', async () => {
    await open('ACB', { BILLING_ENV: 'production' })
    const { ctx } = shop.service
    await shop.relay(await genuineMail('ACB', transfer({ content: 'typo PG23456789' })))
    for (let number = 0; number < 250; number += 1) await aBankMail(ctx, { bank: 'ACB', amount: 1 })
    expect((await unmatched()).map(({ amount }) => amount)).to.deep.equal([TRANSFER.amount])
  })

  it('comes in pages that leave none out', async () => {
    await open()
    const { ctx } = shop.service
    for (let number = 0; number < 25; number += 1) await aBankMail(ctx, { bank: 'ACB', amount: 1, review: 'credit' })
    const seen: number[] = []
    let cursor: string | null = null
    do {
      const page = await listBankMails(
        ctx,
        { unmatched: true },
        { limit: '10', ...(cursor === null ? {} : { cursor }) },
      )
      seen.push(...page.rows.map(({ id }) => id))
      cursor = page.nextCursor
    } while (cursor !== null)
    expect(seen).to.have.lengthOf(25)
    expect([...new Set(seen)].sort((one, other) => other - one)).to.deep.equal(seen)
  })

  it('is suggested in real time for payments of a sandbox app whose clock was moved', async () => {
    for (const first of ['clock', 'payment'] as const) {
      await open()
      const { ctx } = shop.service
      const advance = async () =>
        advanceTestClock(ctx, SERVER, await getApp(ctx.db, shop.app.app.id), { advance_seconds: 30 * 86_400 })
      if (first === 'clock') await advance()
      const payment = await shop.pay()
      if (first === 'payment') await advance()
      await shop.relay(await genuineMail('ACB', transfer()))
      const [mail] = await unmatched()
      expect(
        mail!.suggestions.map(({ transaction_id: id }) => id),
        first,
      ).to.deep.equal([payment.id])
      if (first === 'clock') await shop.service.stop()
    }
  })

  it('is not suggested in app time for payments that were opened after it came', async () => {
    await open()
    const { ctx } = shop.service
    await advanceTestClock(ctx, SERVER, await getApp(ctx.db, shop.app.app.id), { advance_seconds: 30 * 86_400 })
    await shop.relay(await genuineMail('ACB', transfer()))
    ctx.clock.advance('2h')
    await shop.pay()
    expect((await unmatched())[0]!.suggestions).to.deep.equal([])
  })

  it('that is matched late takes nothing of what was bought since: it is superseded, and the preview says so', async () => {
    await open()
    const { ctx } = shop.service
    const app = { ...shop.app, app: await getApp(ctx.db, shop.app.app.id) }
    const month = await aPlan(ctx, app, { code: 'basic', prices: [MONTHLY] })
    const year = await aPlan(ctx, app, { code: 'gold', prices: [YEARLY] })
    const late = await aCheckout(ctx, app, { price_id: priceId(month) })
    await chooseMethod(ctx, tokenOf(late), 'bank_transfer')
    await openBankPage(ctx, tokenOf(late))
    await shop.relay(await genuineMail('ACB', transfer({ content: 'forgot the code' })))
    ctx.clock.advance('1d')
    await paid(ctx, app, { price_id: priceId(year) })
    ctx.clock.advance('1d')
    const [mail] = await unmatched()
    expect(mail!.suggestions.map(({ transaction_id: id }) => id)).to.deep.equal([late.transaction_id])
    const target = { id: mail!.id, transactionId: late.transaction_id! }
    const { effects } = await previewMatch(ctx, operator('linh'), target)
    expect(effects).to.include('cannot be applied: flagged superseded')
    expect(await match(target)).to.include({ status: 'processed' })
    expect(await shop.transaction(target.transactionId)).to.include({ status: 'completed', flagReason: 'superseded' })
    const seller = shop.service.seller(app)
    expect((await seller.get('/api/v1/subscriptions/user-1')).body.data).to.include({
      price_id: priceId(year),
      current_period_end: '2027-03-02 10:00:00',
    })
  })

  it('that came under last month’s code was booked there: a match says so, and a move books it where it belongs', async () => {
    await open()
    const { ctx } = shop.service
    const old = await shop.pay()
    await shop.relay(await genuineMail('ACB', transfer({ content: old.transferCode! })))
    const next = await shop.pay()
    const again = await shop.relay(await genuineMail('ACB', transfer({ content: old.transferCode! })))
    expect(again.body).to.include({ status: 'already_completed' })
    const [mail] = (await listBankMails(ctx)).rows
    const [payment] = await listPaymentRows(ctx.db, { appId: null, waiting: true, after: null, limit: 2 })
    const refused = await failureOf({ id: mail!.id, transactionId: next.id })
    expect(refused).to.have.property('message').that.includes(`booked for transaction ${old.id}`)
    expect(refused).to.have.property('message').that.includes(`payment move ${payment!.id}`)
    const target = { payment_id: payment!.id, transaction_id: next.id, note: 'code of last month' }
    expect(await movePayment(ctx, operator('linh'), target)).to.include({ status: 'processed' })
    for (const id of [old.id, next.id])
      expect(await shop.transaction(id)).to.include({ status: 'completed', flagReason: null, amountLeft: 0 })
  })

  it('keeps the message id of its mail, as far as it can be printed, and the hash of all of it', async () => {
    await open()
    const long = `<${'x'.repeat(1500)}@acb.com.vn>`
    for (const id of ['<one@acb.com.vn>', '<t\u001b[31mw\u00e9o@acb.com.vn>', long, null])
      await shop.relay(await genuineMail('ACB', transfer(), { 'Message-ID': id }))
    const ids = (await unmatched()).map(({ message_id: id }) => id)
    expect(ids).to.deep.equal([null, long.slice(0, 998), '<t[31mwo@acb.com.vn>', '<one@acb.com.vn>'])
    const kept = await shop.service.ctx.db.all(bankMails, 'ORDER BY id')
    expect(kept.map(({ messageIdHash }) => messageIdHash === null)).to.deep.equal([false, false, false, true])
    expect(kept[2]?.messageIdHash).to.equal(sha256Hex(long))
  })
})
