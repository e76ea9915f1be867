import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { readMail } from '#bank-mail/read-mail.ts'
import { newTransferCode } from '#providers/bank-transfer/transfer-code.ts'
import { TRANSFER, TRUST } from '../support/bank-mails.ts'
import type { Attack } from './attacks.ts'
import { aBankShop, type BankShop } from './bank-shop.ts'
import { KINDS_OF_FORGERY } from './forgeries.ts'
import { GENUINE_FORMS } from './genuine-forms.ts'

const CODE = newTransferCode()

describe('a mail that nothing shows to be the bank’s', () => {
  const victim = { code: CODE, amount: TRANSFER.amount, account: TRANSFER.account }
  for (const [name, attack] of KINDS_OF_FORGERY.flatMap(Object.entries<Attack>)) {
    it(`is not trusted: ${name}`, async () => {
      const reading = await readMail(Buffer.from(await attack(victim)), TRUST)
      expect(reading).to.deep.include({ bank: 'TIMO', trust: null, credit: null })
    })
  }
})

describe('a genuine mail', () => {
  for (const [name, form] of Object.entries(GENUINE_FORMS)) {
    it(`is trusted and read: ${name}`, async () => {
      const reading = await readMail(Buffer.from(await form({ ...TRANSFER, content: CODE })), TRUST)
      expect(reading.trust).to.not.equal(null)
      expect(reading.credit).to.deep.include({ amount: TRANSFER.amount, codes: [CODE] })
    })
  }
})

describe('at the relay’s endpoint', () => {
  let shop: BankShop
  afterEach(() => shop.service.stop())

  it('a forgery of each kind is rejected as untrusted_sender', async () => {
    shop = await aBankShop('TIMO')
    const payment = await shop.pay()
    const victim = { code: payment.transferCode!, amount: payment.amount, account: shop.account.number }
    for (const forgeries of KINDS_OF_FORGERY) {
      const [name, attack] = Object.entries(forgeries)[0]!
      const answer = await shop.relay(await attack(victim))
      expect(answer.body, name).to.deep.equal({ status: 'rejected', reason: 'untrusted_sender' })
    }
    expect(await shop.transaction(payment.id)).to.include({ status: 'pending', amountReceived: 0, flagReason: null })
  })

  it('every form of a genuine mail is processed', async () => {
    shop = await aBankShop('TIMO')
    for (const [index, [name, form]] of Object.entries(GENUINE_FORMS).entries()) {
      const payment = await shop.pay()
      const transfer = {
        ...TRANSFER,
        amount: payment.amount,
        content: payment.transferCode!,
        movement: 600_000_000 + index,
      }
      const answer = await shop.relay(await form(transfer))
      expect(answer.body, name).to.deep.equal({ status: 'processed' })
    }
  })
})
