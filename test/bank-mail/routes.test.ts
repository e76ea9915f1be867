import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { apps } from '#apps/store.ts'
import { newTransferCode } from '#providers/bank-transfer/transfer-code.ts'
import { listBankMails } from '#bank-mail/list-bank-mails.ts'
import { matchBankMail } from '#bank-mail/match-bank-mail.ts'
import { bankMails } from '#bank-mail/store.ts'
import { operator } from '#commands/caller.ts'
import { hmacHex } from '#shared/crypto.ts'
import { unixSeconds } from '#shared/time.ts'
import { listPaymentsOf } from '#payments/store.ts'
import { transactions, type Transaction } from '#transactions/store.ts'
import {
  BANK_MAILS,
  bankMail,
  forwardedMail,
  genuineMail,
  OUR_MX,
  receivedBy,
  sealedMail,
  signed,
  TRANSFER,
  type MailBank,
  type Transfer,
} from '../support/bank-mails.ts'
import { addBankAccount, assignBankAccount, disableBankAccount } from '../support/operators.ts'
import { expectError } from '../support/expect-error.ts'
import { KINDS_OF_ATTACK } from './attacks.ts'
import { aBankShop, aTransferApp, relayMail, RELAY_SECRET, type BankShop } from './bank-shop.ts'

const LINH = operator('linh')

let movements = 0

/** A transfer of this payment's amount with its code, by default a new movement. */
function transferFor(payment: Transaction, changes: Partial<Transfer> = {}): Transfer {
  movements += 1
  return {
    ...TRANSFER,
    amount: payment.amount,
    content: payment.transferCode!,
    movement: 700_000_000 + movements,
    ...changes,
  }
}

describe('POST /api/v1/webhooks/bank-transfer', () => {
  let shop: BankShop
  const open = async (...options: Parameters<typeof aBankShop>) => (shop = await aBankShop(...options))
  const kept = async () => shop.service.ctx.db.all(bankMails, 'ORDER BY id')

  afterEach(() => shop.service.stop())

  describe('processed', () => {
    for (const bank of Object.keys(BANK_MAILS) as MailBank[]) {
      it(`is a mail of ${bank} with the payment's code: the payment is completed`, async () => {
        await open(bank)
        const payment = await shop.pay()
        const answer = await shop.relay(await genuineMail(bank, transferFor(payment)))
        expect(answer.status).to.equal(200)
        expect(answer.body).to.deep.equal({ status: 'processed' })
        expect(await shop.transaction(payment.id)).to.deep.include({
          status: 'completed',
          providerCode: 'bank_transfer',
          amountReceived: payment.amount,
          flagReason: null,
        })
      })
    }

    it('is a mail through a trusted forwarder or a trusted sealer', async () => {
      await open('TIMO')
      for (const make of [forwardedMail, sealedMail]) {
        const payment = await shop.pay()
        const answer = await shop.relay(await make('TIMO', transferFor(payment)))
        expect(answer.body).to.deep.equal({ status: 'processed' })
      }
    })

    it('is more money than was due', async () => {
      await open()
      const payment = await shop.pay()
      const answer = await shop.relay(await genuineMail('ACB', transferFor(payment, { amount: payment.amount + 1000 })))
      expect(answer.body).to.deep.equal({ status: 'processed' })
      expect((await shop.transaction(payment.id)).amountReceived).to.equal(payment.amount + 1000)
    })

    it('is money that arrives after the checkout link expired', async () => {
      await open()
      const payment = await shop.pay()
      shop.service.ctx.clock.advance('3d')
      const answer = await shop.relay(await genuineMail('ACB', transferFor(payment)))
      expect(answer.body).to.deep.equal({ status: 'processed' })
    })

    it('is money for an app that has been disabled since', async () => {
      await open()
      const payment = await shop.pay()
      await shop.service.ctx.db.update(apps, { id: shop.app.app.id }, { disabledAt: shop.service.ctx.clock.now() })
      expect((await shop.relay(await genuineMail('ACB', transferFor(payment)))).body).to.deep.equal({
        status: 'processed',
      })
    })

    it('sends the seller transaction.completed', async () => {
      await open()
      const payment = await shop.pay()
      await shop.relay(await genuineMail('ACB', transferFor(payment)))
      const events = await shop.service.seller(shop.app).get('/api/v1/events')
      expect(events.body.data.map((event: { event_type: string }) => event.event_type)).to.deep.equal([
        'transaction.completed',
      ])
    })

    it('recognizes the code as payers and banks write it', async () => {
      await open()
      const payment = await shop.pay()
      const code = payment.transferCode!
      const content = `mbvcb.123.${code.slice(0, 4).toLowerCase()} ${code.slice(4)}.CT tu 1042536477`
      const answer = await shop.relay(await genuineMail('ACB', transferFor(payment, { content })))
      expect(answer.body).to.deep.equal({ status: 'processed' })
    })
  })

  describe('underpaid', () => {
    it('is less money than was due: the payment stays pending and is flagged', async () => {
      await open()
      const payment = await shop.pay()
      const answer = await shop.relay(await genuineMail('ACB', transferFor(payment, { amount: 40_000 })))
      expect(answer.body).to.deep.equal({ status: 'underpaid' })
      expect(await shop.transaction(payment.id)).to.include({
        status: 'pending',
        amountReceived: 40_000,
        flagReason: 'underpaid',
      })
    })

    it('ends when the rest arrives: the transfers add up and the flag is removed', async () => {
      await open()
      const payment = await shop.pay()
      await shop.relay(await genuineMail('ACB', transferFor(payment, { amount: 40_000 })))
      const rest = await shop.relay(await genuineMail('ACB', transferFor(payment, { amount: payment.amount - 40_000 })))
      expect(rest.body).to.deep.equal({ status: 'processed' })
      expect(await shop.transaction(payment.id)).to.include({ status: 'completed', flagReason: null })
    })
  })

  describe('duplicate', () => {
    it('is the same mail again, whether or not the payment is complete', async () => {
      await open()
      for (const amount of [TRANSFER.amount, 1000]) {
        const payment = await shop.pay()
        const mail = await genuineMail('ACB', transferFor(payment, { amount }))
        await shop.relay(mail)
        expect((await shop.relay(mail)).body).to.deep.equal({ status: 'duplicate' })
        expect(await listPaymentsOf(shop.service.ctx.db, payment.id)).to.have.lengthOf(1)
      }
    })

    for (const bank of Object.keys(BANK_MAILS) as MailBank[]) {
      it(`is the same movement of ${bank} under another Message-ID`, async () => {
        await open(bank)
        const payment = await shop.pay()
        const transfer = transferFor(payment)
        await shop.relay(await genuineMail(bank, transfer))
        const again = await shop.relay(await genuineMail(bank, transfer, { 'Message-ID': '<other@evil.example>' }))
        expect(again.body).to.deep.equal({ status: 'duplicate' })
        expect(await shop.transaction(payment.id)).to.include({ amountReceived: payment.amount, flagReason: null })
      })
    }

    it('is another movement under the same Message-ID', async () => {
      await open()
      const payment = await shop.pay()
      const fields = { 'Message-ID': '<one@acb.com.vn>' }
      await shop.relay(await genuineMail('ACB', transferFor(payment), fields))
      const again = await shop.relay(await genuineMail('ACB', transferFor(payment), fields))
      expect(again.body).to.deep.equal({ status: 'duplicate' })
    })

    it('is another movement under the same Message-ID, whose money waits for an operator, once, and can be matched', async () => {
      await open()
      const [first, second] = [await shop.pay(), await shop.pay()]
      const fields = { 'Message-ID': '<one@acb.com.vn>' }
      await shop.relay(await genuineMail('ACB', transferFor(first), fields))
      const reused = await genuineMail('ACB', transferFor(second), fields)
      for (let copy = 0; copy < 2; copy += 1)
        expect((await shop.relay(reused)).body).to.deep.equal({ status: 'duplicate' })
      const { ctx } = shop.service
      const [mail] = (await listBankMails(ctx, { unmatched: true })).rows
      expect(mail).to.include({ amount: second.amount, status: 'duplicate', transaction_id: second.id })
      const target = { id: mail?.id, transactionId: second.id, note: 'two mails, one Message-ID' }
      expect(await matchBankMail(ctx, LINH, target)).to.include({ status: 'processed' })
      expect(await shop.transaction(second.id)).to.include({ status: 'completed', amountReceived: second.amount })
      expect((await listBankMails(ctx, { unmatched: true })).rows).to.deep.equal([])
      expect((await shop.relay(reused)).body).to.deep.equal({ status: 'duplicate' })
      expect(await shop.transaction(second.id)).to.include({ amountReceived: second.amount, flagReason: null })
    })

    it('is a mail that arrived on two routes', async () => {
      await open('TIMO')
      const payment = await shop.pay()
      const transfer = transferFor(payment)
      await shop.relay(await genuineMail('TIMO', transfer))
      expect((await shop.relay(await sealedMail('TIMO', transfer))).body).to.deep.equal({ status: 'duplicate' })
    })

    it('are all but one of ten concurrent copies', async () => {
      await open()
      const payment = await shop.pay()
      const mail = await genuineMail('ACB', transferFor(payment))
      const answers = await Promise.all(Array.from({ length: 10 }, () => shop.relay(mail)))
      const statuses = answers.map((answer) => answer.body.status).sort()
      expect(statuses).to.deep.equal([...Array<string>(9).fill('duplicate'), 'processed'])
      expect(await listPaymentsOf(shop.service.ctx.db, payment.id)).to.have.lengthOf(1)
    })
  })

  describe('already_completed', () => {
    it('is further money for a completed payment: it is recorded and flagged', async () => {
      await open()
      const payment = await shop.pay()
      await shop.relay(await genuineMail('ACB', transferFor(payment)))
      const again = await shop.relay(await genuineMail('ACB', transferFor(payment)))
      expect(again.body).to.deep.equal({ status: 'already_completed' })
      expect(await shop.transaction(payment.id)).to.include({
        status: 'completed',
        flagReason: 'duplicate_payment',
        amountReceived: 2 * payment.amount,
      })
    })
  })

  describe('ignored', () => {
    const expectIgnored = async (mail: string, reason: string) => {
      const answer = await shop.relay(mail)
      expect(answer.status).to.equal(200)
      expect(answer.body).to.deep.equal({ status: 'ignored', reason })
    }

    it('not_bank_email: a mail from anybody else', async () => {
      await open()
      const payment = await shop.pay()
      const mail = bankMail('ACB', transferFor(payment), { From: 'an@example.com' })
      await expectIgnored(await receivedBy(OUR_MX, await signed(mail, 'example.com')), 'not_bank_email')
      await expectIgnored('no mail at all', 'not_bank_email')
      await expectIgnored('\0'.repeat(1000), 'not_bank_email')
    })

    it('no_transfer_code: no code, a mistyped one, or two different ones', async () => {
      await open()
      const [payment, other] = [await shop.pay(), await shop.pay()]
      const code = payment.transferCode!
      const typo = code.slice(0, -1) + (code.endsWith('A') ? 'B' : 'A')
      for (const content of ['TIEN HANG', typo, `${code} ${other.transferCode!}`]) {
        await expectIgnored(await genuineMail('ACB', transferFor(payment, { content })), 'no_transfer_code')
      }
      expect(await shop.transaction(payment.id)).to.include({ status: 'pending', amountReceived: 0 })
    })

    it('no_transfer_code: outgoing money', async () => {
      await open()
      const payment = await shop.pay()
      const body = BANK_MAILS.ACB.body(transferFor(payment), '-')
      const mail = await signed(bankMail('ACB', TRANSFER, {}, body), 'acb.com.vn')
      await expectIgnored(await receivedBy(OUR_MX, mail), 'no_transfer_code')
    })

    it('unknown_transaction: a code of no transaction', async () => {
      await open()
      const payment = await shop.pay()
      const mail = await genuineMail('ACB', transferFor(payment, { content: newTransferCode() }))
      await expectIgnored(mail, 'unknown_transaction')
    })

    it('not_bank_transfer_transaction: a payment whose bank page was never opened', async () => {
      await open()
      const payment = await shop.pay({ closed: true })
      await expectIgnored(await genuineMail('ACB', transferFor(payment)), 'not_bank_transfer_transaction')
    })

    for (const status of ['refunded', 'void'] as const) {
      it(`transaction_not_pending: a payment that is ${status}`, async () => {
        await open()
        const payment = await shop.pay()
        await shop.service.ctx.db.update(transactions, { id: payment.id }, { status })
        await expectIgnored(await genuineMail('ACB', transferFor(payment)), 'transaction_not_pending')
        expect(await shop.transaction(payment.id)).to.include({ status, flagReason: 'duplicate_payment' })
      })
    }

    it('bank_account_unavailable: a disabled account', async () => {
      await open()
      const payment = await shop.pay()
      await disableBankAccount(shop.service.ctx, 'tester', shop.account.id)
      await expectIgnored(await genuineMail('ACB', transferFor(payment)), 'bank_account_unavailable')
    })

    it('bank_account_unavailable: a genuine mail of a bank other than the account’s', async () => {
      await open('MB')
      const payment = await shop.pay()
      await expectIgnored(await genuineMail('ACB', transferFor(payment)), 'bank_account_unavailable')
    })

    it('bank_account_unavailable: an account at a bank whose mails are not read', async () => {
      await open('VCB')
      const payment = await shop.pay()
      await expectIgnored(await genuineMail('ACB', transferFor(payment)), 'bank_account_unavailable')
    })

    it('bank_account_unavailable: money to another account', async () => {
      await open()
      const payment = await shop.pay()
      const mail = await genuineMail('ACB', transferFor(payment, { account: '99999999' }))
      await expectIgnored(mail, 'bank_account_unavailable')
    })

    it('bank_account_unavailable: money to an account that was never the app’s', async () => {
      await open()
      const { ctx } = shop.service
      const payment = await shop.pay()
      await addBankAccount(ctx, 'tester', { bank: 'ACB', number: '11111111', holder: 'B' })
      const mail = await genuineMail('ACB', transferFor(payment, { account: '11111111' }))
      await expectIgnored(mail, 'bank_account_unavailable')
    })
  })

  describe('rejected', () => {
    it('untrusted_sender: a mail in the bank’s name without proof that it is genuine', async () => {
      await open()
      const payment = await shop.pay()
      const answer = await shop.relay(await receivedBy(OUR_MX, bankMail('ACB', transferFor(payment))))
      expect(answer.status).to.equal(200)
      expect(answer.body).to.deep.equal({ status: 'rejected', reason: 'untrusted_sender' })
    })

    it('invalid_recipient: outside development, a mail to an address other than the account’s', async () => {
      await open('TIMO', { BILLING_ENV: 'production' })
      const payment = await shop.pay()
      const other = await addBankAccount(shop.service.ctx, 'tester', { bank: 'TIMO', number: '1', holder: 'B' })
      const mail = await genuineMail('TIMO', transferFor(payment))
      for (const code of ['0000000000', other.forwardCode, shop.account.forwardCode.slice(1), 'x']) {
        const answer = await shop.relay(mail, `bank+${code}@pay.example`)
        expect(answer.body, code).to.deep.equal({ status: 'rejected', reason: 'invalid_recipient' })
      }
      expect((await shop.relay(mail)).body).to.deep.equal({ status: 'processed' })
    })

    it('development relaxes only the check of the address', async () => {
      await open('TIMO')
      const payment = await shop.pay()
      const unsigned = await receivedBy(OUR_MX, bankMail('TIMO', transferFor(payment)))
      expect((await shop.relay(unsigned, 'x@y')).body).to.deep.equal({ status: 'rejected', reason: 'untrusted_sender' })
      const mail = await genuineMail('TIMO', transferFor(payment))
      expect((await shop.relay(mail, 'x@y')).body).to.deep.equal({ status: 'processed' })
    })

    it('a replay: an attacker’s own genuine mail from the same bank, sent to the seller’s address', async () => {
      await open('ACB', { BILLING_ENV: 'production' })
      const payment = await shop.pay()
      const mail = await genuineMail('ACB', transferFor(payment, { account: '66666666' }))
      expect((await shop.relay(mail)).body).to.deep.equal({ status: 'ignored', reason: 'bank_account_unavailable' })
      expect(await shop.transaction(payment.id)).to.include({ status: 'pending', amountReceived: 0 })
    })
  })

  it('accepts no kind of forgery as a payment', async () => {
    await open('TIMO')
    const payment = await shop.pay()
    const victim = { code: payment.transferCode!, amount: payment.amount, account: shop.account.number }
    for (const attacks of KINDS_OF_ATTACK) {
      const [name, attack] = Object.entries(attacks)[0]!
      const answer = await shop.relay(await attack(victim))
      expect(answer.status, name).to.equal(200)
      expect(answer.body.status, name).to.be.oneOf(['ignored', 'rejected'])
    }
    expect(await shop.transaction(payment.id)).to.include({ status: 'pending', amountReceived: 0, flagReason: null })
  })

  describe('a request without a valid signature or body', () => {
    const expectBad = async (changes: Parameters<typeof relayMail>[3]) => {
      const answer = await relayMail(shop.service, 'Subject: x\n\nx', 'x@y', changes)
      expectError(answer, 400, 'invalid_request')
    }
    const now = () => unixSeconds(shop.service.ctx.clock.now())

    it('is refused with 400: a wrong signature of any length', async () => {
      await open()
      for (const length of [0, 1, 63, 64, 65, 128, 200]) await expectBad({ signature: 'a'.repeat(length) })
    })

    it('is refused with 400: a timestamp that differs by more than 300 s, or none', async () => {
      await open()
      for (const timestamp of [`${now() - 301}`, `${now() + 301}`, '', 'x', '1e9', `${now()}.0`, ` ${now()}x`, '-1']) {
        await expectBad({ timestamp })
      }
      for (const offset of [-300, 300]) {
        const answer = await relayMail(shop.service, 'x', 'x@y', { timestamp: String(now() + offset) })
        expect(answer.status, String(offset)).to.equal(200)
      }
    })

    it('is refused with 400: a changed body, or one signed without its timestamp', async () => {
      await open()
      const body = JSON.stringify({ envelope_to: 'x@y', raw: 'eA==' })
      await expectBad({ body, signature: hmacHex(RELAY_SECRET, `${now()}.${body} `) })
      await expectBad({ body, signature: hmacHex(RELAY_SECRET, body) })
    })

    it('is refused with 400: malformed JSON, another shape, invalid base64', async () => {
      await open()
      for (const body of [
        '',
        '{',
        '[]',
        'null',
        '"x"',
        '{"raw":"eA=="}',
        '{"envelope_to":"x@y","raw":"*"}',
        '['.repeat(50_000),
      ]) {
        await expectBad({ body })
      }
    })

    it('is refused with 400: more than 256 KB', async () => {
      await open()
      const bodyOf = (size: number) => {
        const frame = JSON.stringify({ envelope_to: 'x@y', raw: '' }).length
        return JSON.stringify({ envelope_to: 'x@y', raw: 'A'.repeat(size - frame) })
      }
      const largest = 256 * 1024 - ((256 * 1024 - JSON.stringify({ envelope_to: 'x@y', raw: '' }).length) % 4)
      const fits = await relayMail(shop.service, '', 'x@y', { body: bodyOf(largest) })
      expect(fits.status).to.equal(200)
      await expectBad({ body: bodyOf(256 * 1024 + 1) })
      await expectBad({ body: bodyOf(1024 * 1024) })
    })

    it('gets the same message, whatever is wrong', async () => {
      await open()
      const messages = new Set<string>()
      for (const changes of [{ signature: 'x' }, { timestamp: '1' }, { body: '{' }]) {
        const answer = await relayMail(shop.service, 'x', 'x@y', changes)
        messages.add(answer.body.error.message)
      }
      expect(messages.size).to.equal(1)
    })
  })

  it('answers 404 without a relay secret', async () => {
    await open('ACB', { BILLING_RELAY_SECRET: '' })
    expectError(await relayMail(shop.service, 'x', 'x@y'), 404, 'not_found')
    expectError(await shop.service.call('GET', '/api/v1/webhooks/bank-transfer'), 404, 'not_found')
  })

  it('stores a redacted summary of each mail, and logs none of its text', async () => {
    await open()
    const payment = await shop.pay()
    const transfer = transferFor(payment, { content: `BI MAT ${payment.transferCode!}` })
    const mail = await genuineMail('ACB', transfer)
    await shop.relay(mail)
    await shop.relay(mail.replace('ACB <mailalert@acb.com.vn>', 'Alice <alice@example.com>'))
    const [processed, ignored] = await kept()
    expect(processed).to.deep.include({
      bank: 'ACB',
      amount: payment.amount,
      transferCode: payment.transferCode,
      status: 'processed',
      reason: null,
      transactionId: payment.id,
      bankAccountId: shop.account.id,
    })
    expect(ignored).to.include({ bank: null, amount: null, status: 'ignored', reason: 'not_bank_email' })
    const written = JSON.stringify(await kept()) + shop.service.ctx.logged.join('')
    for (const secret of ['BI MAT', 'alice', 'Alice', RELAY_SECRET, shop.account.forwardCode, 'mailalert']) {
      expect(written).not.to.contain(secret)
    }
  })

  it('counts each decision', async () => {
    await open()
    const payment = await shop.pay()
    await shop.relay(await genuineMail('ACB', transferFor(payment)))
    const counted = shop.service.ctx.counted.filter(({ metric }) => metric === 'bank_mails_total')
    expect(counted.map(({ labels }) => labels)).to.deep.equal([{ status: 'processed', reason: '' }])
  })

  it('applies each app’s money only to that app’s payments', async () => {
    await open()
    const { ctx } = shop.service
    const other = await aTransferApp(ctx)
    const account = await addBankAccount(ctx, 'tester', { bank: 'ACB', number: '22222222', holder: 'B' })
    await assignBankAccount(ctx, 'tester', other.app, account.id)
    const payment = await shop.pay()
    const mail = await genuineMail('ACB', transferFor(payment, { account: '22222222' }))
    expect((await shop.relay(mail)).body).to.deep.equal({ status: 'ignored', reason: 'bank_account_unavailable' })
  })
})
