import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { listBankMails } from '#bank-mail/list-bank-mails.ts'
import { matchBankMail } from '#bank-mail/match-bank-mail.ts'
import { examine } from '#doctor/doctor.ts'
import { listAuditEntries } from '#commands/store.ts'
import type { Transaction } from '#transactions/store.ts'
import {
  bankMail,
  FORWARDER,
  forwardedBy,
  genuineMail,
  MAILBOX,
  OUR_MX,
  receivedBy,
  signed,
  type MailBank,
} from '../support/bank-mails.ts'
import { addBankAccount, assignBankAccount, disableBankAccount, updateBankAccount } from '../support/operators.ts'
import { aBankShop, transferFor, type BankShop } from './bank-shop.ts'
import { operator } from '#commands/caller.ts'

const PRODUCTION = { BILLING_ENV: 'production' }
const INVALID_RECIPIENT = { status: 'rejected', reason: 'invalid_recipient' }
const PROCESSED = { status: 'processed' }

describe('the mailbox of a bank account', () => {
  let shop: BankShop
  const open = async (...options: Parameters<typeof aBankShop>) => (shop = await aBankShop(...options))
  const unmatched = async () => (await listBankMails(shop.service.ctx, { unmatched: true })).rows
  const answerTo = async (mail: string): Promise<unknown> => (await shop.relay(mail)).body
  const decided = async (bank: MailBank, fields: Readonly<Record<string, string | null>>) =>
    answerTo(await genuineMail(bank, transferFor(await shop.pay()), fields))

  afterEach(() => shop.service.stop())

  it('is whom the bank must have written to: a genuine mail that somebody else got and sent on is invalid_recipient', async () => {
    await open('TIMO', PRODUCTION)
    const payment = await shop.pay()
    const replayed = await genuineMail('TIMO', transferFor(payment), { To: 'attacker@mail.example' })
    expect(await answerTo(replayed)).to.deep.equal(INVALID_RECIPIENT)
    expect(await shop.transaction(payment.id)).to.include({ status: 'pending', amountReceived: 0 })
    expect(await unmatched()).to.deep.equal([])
  })

  it('is the one address of the one To', async () => {
    await open('TIMO')
    for (const To of [
      null,
      '',
      `attacker@mail.example, ${MAILBOX}`,
      `${MAILBOX}, attacker@mail.example`,
      `Seller: ${MAILBOX};`,
      `"${MAILBOX}" <attacker@mail.example>`,
      `attacker@mail.example (${MAILBOX})`,
      'x@seller@gmail.example',
    ]) {
      expect(await decided('TIMO', { To }), String(To)).to.deep.equal(INVALID_RECIPIENT)
    }
    expect(await decided('TIMO', { To: 'attacker@mail.example', TO: MAILBOX })).to.deep.equal(INVALID_RECIPIENT)
    expect(await decided('TIMO', { To: MAILBOX, Cc: 'an@example.com' })).to.deep.equal(PROCESSED)
  })

  it('is compared as mail providers compare addresses: case makes no difference', async () => {
    await open('TIMO')
    for (const To of [`NGUYEN VAN A <${MAILBOX}>`, 'Seller@GMAIL.example', `<${MAILBOX.toUpperCase()}>`]) {
      expect(await decided('TIMO', { To }), To).to.deep.equal(PROCESSED)
    }
    expect(await decided('TIMO', { To: 'sel.ler@gmail.example' })).to.deep.equal(INVALID_RECIPIENT)
  })

  it('must be under the bank’s signature if the mail carries one: an unsigned To can have been written over', async () => {
    await open('TIMO')
    const unsignedTo = await signed(bankMail('TIMO', transferFor(await shop.pay())), 'timo.vn', {
      headerList: 'From:Subject:Content-Type',
    })
    expect(await answerTo(await receivedBy(OUR_MX, unsignedTo))).to.deep.equal(INVALID_RECIPIENT)
  })

  it('must be so too if the signature did not survive a trusted forwarder', async () => {
    await open('TIMO')
    const forwarded = async (headerList: string) => {
      const mail = await signed(bankMail('TIMO', transferFor(await shop.pay())), 'timo.vn', { headerList })
      return answerTo(await receivedBy(OUR_MX, await forwardedBy(FORWARDER, mail)))
    }
    expect(await forwarded('From:Subject:Content-Type')).to.deep.equal(INVALID_RECIPIENT)
    expect(await forwarded('From:To:Subject:Content-Type')).to.deep.equal(PROCESSED)
  })

  it('is asked if the bank names the account too, once it is set', async () => {
    await open('ACB', {}, { mailbox: MAILBOX })
    expect(await decided('ACB', { To: 'other@mail.example' })).to.deep.equal(INVALID_RECIPIENT)
    expect(await decided('ACB', {})).to.deep.equal(PROCESSED)
    await updateBankAccount(shop.service.ctx, 'linh', shop.account.id, { mailbox: '' })
    expect(await decided('ACB', { To: 'other@mail.example' })).to.deep.equal(PROCESSED)
  })

  it('must be known if the bank’s mails name no account: without it money is bank_account_unavailable, and waits', async () => {
    await open('TIMO', PRODUCTION, {})
    const payment = await shop.pay()
    const mail = await genuineMail('TIMO', transferFor(payment))
    expect(await answerTo(mail)).to.deep.equal({ status: 'ignored', reason: 'bank_account_unavailable' })
    expect(await shop.transaction(payment.id)).to.include({ status: 'pending', amountReceived: 0 })
    const [waiting] = await unmatched()
    expect(waiting).to.deep.include({ amount: payment.amount, review: 'credit', transaction_id: payment.id })
    expect(waiting?.suggestions.map(({ transaction_id: id }) => id)).to.deep.equal([payment.id])

    await updateBankAccount(shop.service.ctx, 'linh', shop.account.id, { mailbox: MAILBOX })
    expect(await answerTo(mail)).to.deep.equal(PROCESSED)
    expect(await unmatched(), 'the same movement was booked').to.deep.equal([])
  })

  it('is missed by doctor on an account of such a bank that an app is paid to', async () => {
    await open('TIMO', {}, {})
    const { ctx } = shop.service
    const warnings = async () =>
      (await examine(ctx)).filter(({ check, fix }) => check === 'relay' && fix?.includes('--mailbox') === true)
    expect(await warnings()).to.have.lengthOf(1)
    expect((await warnings())[0]).to.include({
      ok: true,
      fix: `run billing-cli bank-account update ${shop.account.id} --mailbox <address>`,
    })
    await updateBankAccount(ctx, 'linh', shop.account.id, { mailbox: MAILBOX })
    expect(await warnings()).to.deep.equal([])
    const [entry] = await listAuditEntries(ctx.db, { limit: 1 })
    expect(entry).to.deep.include({
      action: 'bank-account.update',
      subject: `bank account ${shop.account.id}`,
      beforeState: { mailbox: null },
      afterState: { mailbox: MAILBOX },
    })
  })

  it('is questioned by doctor if the bank’s mails go to another one, since it may be mistyped', async () => {
    await open('TIMO', PRODUCTION, { mailbox: 'seler@gmail.example' })
    const mails = async () => (await examine(shop.service.ctx)).find(({ check }) => check === 'mails')
    expect(await decided('TIMO', {})).to.deep.equal(INVALID_RECIPIENT)
    expect((await mails())?.detail)
      .to.include('1 bank mails')
      .and.include('invalid_recipient')
    shop.service.ctx.clock.advance('8d')
    expect(await mails()).to.include({ fix: null })
  })

  it('is one address', async () => {
    await open()
    for (const mailbox of ['x', 'a@b.example, c@d.example', 'A <a@b.example>', `${'a'.repeat(250)}@b.example`]) {
      const refused = await updateBankAccount(shop.service.ctx, 'linh', shop.account.id, { mailbox }).catch(
        (error: unknown) => error,
      )
      expect(refused, mailbox).to.include({ code: 'invalid_request', field: 'mailbox' })
    }
  })
})

describe('money on an account that the app had before', () => {
  let shop: BankShop
  const unmatched = async () => (await listBankMails(shop.service.ctx, { unmatched: true })).rows
  const moveTo = async (bank: string, number: string, mailbox?: string) => {
    const { ctx } = shop.service
    const account = await addBankAccount(ctx, 'tester', { bank, number, holder: 'NGUYEN VAN A', mailbox })
    await assignBankAccount(ctx, 'tester', shop.app.app, account.id)
    return account
  }
  /** Expects that the mail waits, and that an operator can book it for the payment. */
  const expectMatchable = async (payment: Transaction) => {
    const waiting = await unmatched()
    expect(waiting.map(({ amount, review }) => ({ amount, review }))).to.deep.equal([
      { amount: payment.amount, review: 'credit' },
    ])
    expect(waiting[0]!.suggestions.map(({ transaction_id: id }) => id)).to.deep.equal([payment.id])
    const match = { id: waiting[0]!.id, transactionId: payment.id, note: 'paid on the old page' }
    expect(await matchBankMail(shop.service.ctx, operator('linh'), match)).to.include(PROCESSED)
    expect((await shop.transaction(payment.id)).status).to.equal('completed')
    expect(await unmatched()).to.deep.equal([])
  }

  afterEach(() => shop.service.stop())

  for (const next of [MAILBOX, undefined]) {
    it(`is invalid_recipient and matchable, when it came to the old secret address (the new account ${next ? 'has a' : 'has no'} mailbox)`, async () => {
      shop = await aBankShop('TIMO', PRODUCTION)
      const payment = await shop.pay()
      await moveTo('TIMO', '99887766', next)
      const answer = await shop.relay(await genuineMail('TIMO', transferFor(payment)))
      expect(answer.body).to.deep.equal(INVALID_RECIPIENT)
      await expectMatchable(payment)
    })
  }

  it('is invalid_recipient and matchable, when the mail names the old account, whichever of our addresses it came to', async () => {
    for (const isOldAddress of [true, false]) {
      shop = await aBankShop('ACB', PRODUCTION)
      const payment = await shop.pay({ externalRef: String(isOldAddress) })
      const { forwardCode } = await moveTo('ACB', '99887766')
      const mail = await genuineMail('ACB', transferFor(payment))
      const answer = await (isOldAddress ? shop.relay(mail) : shop.relay(mail, `bank+${forwardCode}@pay.example`))
      expect(answer.body).to.deep.equal(INVALID_RECIPIENT)
      await expectMatchable(payment)
      if (isOldAddress) await shop.service.stop()
    }
  })

  it('is invalid_recipient and matchable, when the app has an account at another bank now', async () => {
    shop = await aBankShop('TIMO', PRODUCTION)
    const payment = await shop.pay()
    await moveTo('ACB', '99887766')
    const answer = await shop.relay(await genuineMail('TIMO', transferFor(payment)))
    expect(answer.body).to.deep.equal(INVALID_RECIPIENT)
    await expectMatchable(payment)
  })

  it('is matchable, when the account was disabled', async () => {
    shop = await aBankShop('ACB', PRODUCTION)
    const payment = await shop.pay()
    await disableBankAccount(shop.service.ctx, 'tester', shop.account.id)
    const answer = await shop.relay(await genuineMail('ACB', transferFor(payment)))
    expect(answer.body).to.deep.equal({ status: 'ignored', reason: 'bank_account_unavailable' })
    await expectMatchable(payment)
  })

  it('does not wait if the mail came to no address of ours, or the bank wrote it to another mailbox', async () => {
    shop = await aBankShop('TIMO', PRODUCTION)
    const payment = await shop.pay()
    await moveTo('TIMO', '99887766', MAILBOX)
    await shop.relay(await genuineMail('TIMO', transferFor(payment)), 'bank+0000000000@pay.example')
    await shop.relay(await genuineMail('TIMO', transferFor(payment), { To: 'attacker@mail.example' }))
    expect(await unmatched()).to.deep.equal([])
  })

  it('does not wait if the same movement was booked by another way, before or after', async () => {
    shop = await aBankShop('TIMO', PRODUCTION)
    const { forwardCode } = await moveTo('TIMO', '99887766', MAILBOX)
    for (const isOldFirst of [true, false]) {
      const payment = await shop.pay()
      const mail = await genuineMail('TIMO', transferFor(payment))
      const toNew = () => shop.relay(mail, `bank+${forwardCode}@pay.example`)
      if (!isOldFirst) expect((await toNew()).body).to.deep.equal(PROCESSED)
      expect((await shop.relay(mail)).body).to.deep.equal(INVALID_RECIPIENT)
      if (isOldFirst) expect((await toNew()).body).to.deep.equal(PROCESSED)
      expect(await unmatched()).to.deep.equal([])
    }
  })
})
