import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { chooseMethod } from '#checkout/choose-method.ts'
import { findSessionOfTransaction } from '#checkout/store.ts'
import { listBankMails } from '#bank-mail/list-bank-mails.ts'
import { matchBankMail } from '#bank-mail/match-bank-mail.ts'
import type { Transaction } from '#transactions/store.ts'
import { genuineMail, TRANSFER } from '../support/bank-mails.ts'
import { TestClock } from '../support/context.ts'
import { startPayosPeer, type PayosPeer } from '../support/payos-peer.ts'
import { until } from '../support/until.ts'
import { aBankShop, PAYOS_KEYS, type BankShop } from './bank-shop.ts'
import { operator } from '#commands/caller.ts'

describe('a payment that was opened elsewhere and then paid by plain transfer', () => {
  let payos: PayosPeer
  let shop: BankShop

  beforeEach(async () => {
    payos = await startPayosPeer(new TestClock(), PAYOS_KEYS)
    shop = await aBankShop('ACB', { BILLING_PAYOS_API_BASE: payos.base })
  })

  afterEach(async () => {
    await shop.service.stop()
    await payos.stop()
  })

  it('is closed there soon after the bank’s mail, and the relay is answered before', async () => {
    const payment = await openedAtPayos()
    payos.mode = 'silent'
    const calls = payos.calls.length
    const answer = await shop.relay(await genuineMail('ACB', { ...TRANSFER, content: payment.transferCode! }))
    expect(answer.body).to.deep.equal({ status: 'processed' })
    await until(() => payos.calls.length > calls)
  })

  it('cannot be paid there any more', async () => {
    const payment = await openedAtPayos()
    await shop.relay(await genuineMail('ACB', { ...TRANSFER, content: payment.transferCode! }))
    await until(() => payos.links[0]!.status === 'CANCELLED')
  })

  it('is closed there when an operator matches the money', async () => {
    const payment = await openedAtPayos()
    await shop.relay(await genuineMail('ACB', { ...TRANSFER, movement: 990_000_001 }))
    const [mail] = (await listBankMails(shop.service.ctx, { unmatched: true })).rows
    await matchBankMail(shop.service.ctx, operator('linh'), { id: mail!.id, transactionId: payment.id, note: 'called' })
    expect(payos.links[0]!.status).to.equal('CANCELLED')
  })

  /** A payment whose bank page was opened, and then a PayOS link. */
  async function openedAtPayos(): Promise<Transaction> {
    const payment = await shop.pay()
    const { ctx } = shop.service
    const session = await findSessionOfTransaction(ctx.db, payment.id)
    await chooseMethod(ctx, session!.token, 'payos')
    expect(payos.links[0]!.status).to.equal('PENDING')
    return payment
  }
})
