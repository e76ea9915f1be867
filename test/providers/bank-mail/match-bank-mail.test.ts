import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { listBankMails } from '#providers/bank-mail/list-bank-mails.ts'
import { matchBankMail } from '#providers/bank-mail/match-bank-mail.ts'
import { newTransferCode } from '#providers/bank-transfer/transfer-code.ts'
import { listAuditEntries } from '#db/store.ts'
import { formatTimestamp } from '#shared/time.ts'
import { bankMail, genuineMail, OUR_MX, receivedBy, signed, TRANSFER } from '../../support/bank-mails.ts'
import type { Transfer } from '../../support/bank-mails.ts'
import { aBankShop } from './bank-shop.ts'
import type { BankShop } from './bank-shop.ts'

let movements = 0

function transfer(changes: Partial<Transfer> = {}): Transfer {
  movements += 1
  return { ...TRANSFER, movement: 800_000_000 + movements, ...changes }
}

describe('unmatched money', () => {
  let shop: BankShop
  const open = async (...options: Parameters<typeof aBankShop>) => (shop = await aBankShop(...options))
  const unmatched = () => listBankMails(shop.service.ctx, { unmatched: true })
  const match = (input: object) => matchBankMail(shop.service.ctx, 'linh', { note: 'payer called', ...input })
  const fault = (input: object) => match(input).catch((error: unknown) => error)

  afterEach(() => shop.service.stop())

  it('is listed with what is kept of its mail, and the payments it may be meant for', async () => {
    await open()
    const [exact, more] = [await shop.pay(), await shop.pay({ amount: 120_000 })]
    await shop.relay(await genuineMail('ACB', transfer()))
    const mails = await unmatched()
    expect(mails).to.have.lengthOf(1)
    expect(mails[0]).to.deep.equal({
      id: mails[0]!.id,
      received_at: formatTimestamp(shop.service.ctx.clock.now()),
      bank: 'ACB',
      amount: TRANSFER.amount,
      transfer_code: null,
      status: 'ignored',
      reason: 'no_transfer_code',
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

  it('is not what was booked, what is no bank’s mail, what is not trusted, or tells of no money', async () => {
    await open()
    const payment = await shop.pay()
    await shop.relay(await genuineMail('ACB', transfer({ content: payment.transferCode! })))
    await shop.relay('Subject: x\r\n\r\nx')
    await shop.relay(await receivedBy(OUR_MX, bankMail('ACB', transfer())))
    await shop.relay(await receivedBy(OUR_MX, await signed(bankMail('ACB', transfer(), {}, 'news'), 'acb.com.vn')))
    expect(await unmatched()).to.deep.equal([])
    expect(await listBankMails(shop.service.ctx)).to.have.lengthOf(4)
  })

  it('is, outside development, only what came to an account’s secret address about that account', async () => {
    await open('ACB', { BILLING_ENV: 'production' })
    await shop.relay(await genuineMail('ACB', transfer()))
    await shop.relay(await genuineMail('ACB', transfer()), 'bank+0000000000@pay.example')
    await shop.relay(await genuineMail('ACB', transfer({ account: '66666666' })))
    await shop.relay(await genuineMail('TIMO', transfer()))
    const mails = await unmatched()
    expect(mails).to.have.lengthOf(1)
    const others = (await listBankMails(shop.service.ctx)).filter(({ id }) => id !== mails[0]!.id)
    const payment = await shop.pay()
    for (const { id } of others) expect(await fault({ id, transactionId: payment.id })).to.have.property('field', 'id')
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

  it('is booked once: not again by hand, and not by the same mail coming again', async () => {
    await open()
    const [payment, other] = [await shop.pay(), await shop.pay()]
    const mail = await genuineMail('ACB', transfer({ content: newTransferCode() }))
    await shop.relay(mail)
    await shop.relay(mail)
    const [second, first] = await unmatched()
    await match({ id: first!.id, transactionId: payment.id })
    expect(await fault({ id: first!.id, transactionId: other.id })).to.have.property('field', 'id')
    expect(await fault({ id: second!.id, transactionId: other.id })).to.have.property('code', 'invalid_request')
    expect(await shop.transaction(other.id)).to.include({ status: 'pending', amountReceived: 0 })
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

  it('is not booked for what is not there, or without a reason', async () => {
    await open()
    const payment = await shop.pay()
    await shop.relay(await genuineMail('ACB', transfer()))
    const [mail] = await unmatched()
    expect(await fault({ id: 999_999, transactionId: payment.id })).to.have.property('code', 'not_found')
    expect(await fault({ id: mail!.id, transactionId: 999_999 })).to.have.property('code', 'not_found')
    expect(await fault({ id: mail!.id, transactionId: payment.id, note: '' })).to.have.property('field', 'note')
  })
})
