import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { closeBankMail } from '#bank-mail/close-bank-mail.ts'
import { listBankMails } from '#bank-mail/list-bank-mails.ts'
import { matchBankMail, previewMatch } from '#bank-mail/match-bank-mail.ts'
import { bankMails } from '#bank-mail/store.ts'
import { examine } from '#doctor/doctor.ts'
import { listAuditEntries } from '#commands/store.ts'
import {
  alternativeMail,
  BANK_MAILS,
  bankMail,
  OUR_MX,
  receivedBy,
  signed,
  TRANSFER,
  type MailBank,
  type Transfer,
} from '../support/bank-mails.ts'
import { aBankShop, transferFor, type BankShop } from './bank-shop.ts'
import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'

const BANKS = Object.keys(BANK_MAILS) as MailBank[]
const NO_CODE = { status: 'ignored', reason: 'no_transfer_code' }
const PROCESSED = { status: 'processed' }

describe('what a bank writes beside its notices', () => {
  let shop: BankShop
  const open = async (...options: Parameters<typeof aBankShop>) => (shop = await aBankShop(...options))
  const unmatched = async () => (await listBankMails(shop.service.ctx, { unmatched: true })).rows
  /** The answer to a mail that the bank's domain really signed. */
  const answerTo = async (
    bank: MailBank,
    transfer: Transfer,
    fields: Readonly<Record<string, string | null>>,
    body?: string,
  ): Promise<unknown> => {
    const mail = await signed(bankMail(bank, transfer, fields, body), BANK_MAILS[bank].domain)
    return (await shop.relay(await receivedBy(OUR_MX, mail))).body
  }
  const waitsAs = async () => (await unmatched()).map(({ bank, amount, review }) => ({ bank, amount, review }))

  afterEach(() => shop.service.stop())

  for (const bank of BANKS) {
    const { domain } = BANK_MAILS[bank]

    it(`is no notice of ${bank} from any other mailbox under its domain; it waits for an operator`, async () => {
      await open(bank)
      const payment = await shop.pay()
      const fields = { From: `Help <help@${domain}>` }
      expect(await answerTo(bank, transferFor(payment), fields)).to.deep.equal(NO_CODE)
      expect(await answerTo(bank, transferFor(payment), { From: `x@tickets.${domain}` })).to.deep.equal(NO_CODE)
      expect(await shop.transaction(payment.id)).to.include({ status: 'pending', amountReceived: 0 })
      expect(await waitsAs()).to.deep.equal(Array(2).fill({ bank, amount: payment.amount, review: 'unknown_sender' }))
    })

    it(`is no notice of ${bank} if something stands before the notice`, async () => {
      await open(bank)
      const payment = await shop.pay()
      const transfer = transferFor(payment)
      const body = `Ticket 17: your customer wrote:\r\n<br>\r\n${BANK_MAILS[bank].body(transfer)}`
      expect(await answerTo(bank, transfer, {}, body)).to.deep.equal(NO_CODE)
      expect(await waitsAs()).to.deep.equal([{ bank, amount: payment.amount, review: 'not_understood' }])
    })

    it(`is no notice of ${bank} under another subject, or as an answer`, async () => {
      await open(bank)
      const payment = await shop.pay()
      const { subject } = BANK_MAILS[bank]
      for (const fields of [
        { Subject: 'Your ticket' },
        { Subject: `Ticket 17 ${subject}` },
        { Subject: null },
        { 'In-Reply-To': '<x@evil.example>' },
      ]) {
        expect(await answerTo(bank, transferFor(payment), fields), JSON.stringify(fields)).to.deep.equal(NO_CODE)
      }
      expect(await waitsAs()).to.deep.equal(Array(4).fill({ bank, amount: payment.amount, review: 'not_understood' }))
    })

    it(`is a notice of ${bank} under its subject, plain, encoded in pieces, or marked by a forwarder`, async () => {
      await open(bank)
      const { subject, from } = BANK_MAILS[bank]
      const words = subject.split(' ')
      const pieces = [words.slice(0, 2).join(' '), ` ${words.slice(2).join(' ')}`]
      const encoded = pieces.map((piece) => `=?UTF-8?B?${Buffer.from(piece).toString('base64')}?=`)
      for (const fields of [
        { Subject: encoded.join('\r\n ') },
        { Subject: `[seen] ${encoded.join(' ')}` },
        { Subject: `[EXT] [list: bank] ${encoded.join(' ')}` },
        {
          Subject: `=?utf-8?Q?${[...Buffer.from(subject)].map((byte) => `=${byte.toString(16).padStart(2, '0').toUpperCase()}`).join('')}?=`,
        },
        { From: from.toUpperCase() },
      ]) {
        const answer = await answerTo(bank, transferFor(await shop.pay()), fields)
        expect(answer, JSON.stringify(fields)).to.deep.equal(PROCESSED)
      }
      expect(await unmatched()).to.deep.equal([])
    })

    it(`needs nobody if ${bank} says that money went out, and waits if nobody understands it`, async () => {
      await open(bank)
      const debit = BANK_MAILS[bank].body(TRANSFER, '-')
      expect(await answerTo(bank, TRANSFER, {}, debit)).to.deep.equal(NO_CODE)
      expect(await answerTo(bank, TRANSFER, { From: `news@${domain}` }, 'A better rate for you')).to.deep.equal(NO_CODE)
      expect(await unmatched()).to.deep.equal([])
      for (const body of ['A better rate for you', ''])
        expect(await answerTo(bank, TRANSFER, {}, body)).to.deep.equal(NO_CODE)
      expect(await waitsAs()).to.deep.equal(Array(2).fill({ bank, amount: null, review: 'not_understood' }))
    })
  }

  it('waits if a bank changed a label of its notice, and its parts disagree', async () => {
    await open()
    const payment = await shop.pay()
    const transfer = transferFor(payment)
    const changed = BANK_MAILS.ACB.body(transfer).replace('Giao dịch mới nhất', 'Giao dịch gần nhất')
    expect(await answerTo('ACB', transfer, {}, changed)).to.deep.equal(NO_CODE)
    const much = { ...transfer, amount: 2 * payment.amount }
    const halves = alternativeMail('ACB', BANK_MAILS.ACB.body(transfer), BANK_MAILS.ACB.body(much))
    const mail = await receivedBy(OUR_MX, await signed(halves, 'acb.com.vn'))
    expect((await shop.relay(mail)).body).to.deep.equal(NO_CODE)
    expect(await waitsAs()).to.deep.equal(Array(2).fill({ bank: 'ACB', amount: null, review: 'not_understood' }))
  })

  it('waits, outside development, only where it came to an account of that bank', async () => {
    await open('TIMO', { BILLING_ENV: 'production' })
    await answerTo('TIMO', TRANSFER, {}, 'news')
    await answerTo('ACB', TRANSFER, {}, 'news')
    await answerTo('TIMO', TRANSFER, { To: 'attacker@mail.example' }, 'news')
    const mail = await receivedBy(OUR_MX, await signed(bankMail('TIMO', TRANSFER, {}, 'news'), 'timo.vn'))
    await shop.relay(mail, 'bank+0000000000@pay.example')
    expect(await waitsAs()).to.deep.equal([{ bank: 'TIMO', amount: null, review: 'not_understood' }])
  })

  it('never waits if it is not shown to be the bank’s', async () => {
    await open()
    await shop.relay(await receivedBy(OUR_MX, bankMail('ACB', TRANSFER, {}, 'news')))
    expect(await unmatched()).to.deep.equal([])
  })

  it('is counted by doctor', async () => {
    await open()
    const mails = async () => (await examine(shop.service.ctx)).find(({ check }) => check === 'mails')
    expect(await mails()).to.include({ ok: true, fix: null })
    const payment = await shop.pay()
    await answerTo('ACB', transferFor(payment, { content: 'no code' }), {})
    await answerTo('ACB', transferFor(payment), {}, 'news')
    await answerTo('ACB', transferFor(payment), {}, 'more news')
    await answerTo('ACB', transferFor(payment), { From: 'x@acb.com.vn' })
    const found = await mails()
    expect(found?.detail).to.equal(
      'bank mails to review: 1 with unmatched money; 2 not understood; 1 of unknown senders at a bank',
    )
    expect(found?.fix).to.include('bank-mail list --unmatched').and.include('close <id>')
  })

  describe('and an operator decides about', () => {
    const failureOf = (work: Promise<unknown>) => work.catch((error: unknown) => error)
    const note = 'seen on the statement'

    it('is booked with the amount that the operator gives, and only so', async () => {
      await open()
      const { ctx } = shop.service
      const payment = await shop.pay()
      await answerTo('ACB', TRANSFER, { 'Message-ID': '<odd-1@acb.com.vn>' }, 'a new kind of notice')
      const [mail] = await unmatched()
      expect(mail).to.include({ message_id: '<odd-1@acb.com.vn>', amount: null })
      expect(mail!.suggestions).to.deep.equal([])
      const target = { id: mail!.id, transactionId: payment.id }
      expect(await failureOf(matchBankMail(ctx, operator('linh'), { ...target, note }))).to.include({ field: 'amount' })
      expect(await failureOf(previewMatch(ctx, operator('linh'), target))).to.include({ field: 'amount' })
      for (const amount of [0, -1, 1.5, 1e15])
        expect(await failureOf(matchBankMail(ctx, operator('linh'), { ...target, note, amount }))).to.include({
          field: 'amount',
        })
      const { effects } = await previewMatch(ctx, operator('linh'), { ...target, amount: payment.amount })
      expect(effects.slice(0, 2)).to.deep.equal([
        "check the account's statement first: the mail was not understood",
        'the mail does not prove the amount',
      ])
      const matched = await matchBankMail(ctx, operator('linh'), { ...target, note, amount: payment.amount })
      expect(matched).to.include(PROCESSED)
      expect((await shop.transaction(payment.id)).amountReceived).to.equal(payment.amount)
      expect(await unmatched()).to.deep.equal([])
      const [entry] = await listAuditEntries(ctx.db, { limit: 1 })
      expect(entry).to.deep.include({
        action: 'bank-mail.match',
        beforeState: { status: 'ignored', reason: 'no_transfer_code', review: 'not_understood', amount: null },
        afterState: { transaction_id: payment.id, outcome: 'processed', amount: payment.amount },
      })
      const [listed] = (await listBankMails(ctx)).rows
      expect(listed).to.include({ amount: payment.amount, review: null, transaction_id: payment.id })
    })

    it('is booked once, though the same mail came twice', async () => {
      await open()
      const { ctx } = shop.service
      const [payment, other] = [await shop.pay(), await shop.pay()]
      for (const id of ['<odd-2@acb.com.vn>', '<odd-3@acb.com.vn>'])
        await answerTo('ACB', TRANSFER, { 'Message-ID': id }, 'a new kind of notice')
      const [second, first] = await unmatched()
      const amount = payment.amount
      await matchBankMail(ctx, operator('linh'), { id: first!.id, transactionId: payment.id, note, amount })
      const again = await failureOf(
        matchBankMail(ctx, operator('linh'), { id: second!.id, transactionId: other.id, note, amount }),
      )
      expect(again).to.have.property('code', 'invalid_request')
      expect((await shop.transaction(other.id)).amountReceived).to.equal(0)
    })

    it('waits once, though two routes have it with different ends of lines', async () => {
      await open()
      const { ctx } = shop.service
      const odd = bankMail('ACB', TRANSFER, { 'Message-ID': null }, 'a new kind of notice')
      const mail = await receivedBy(OUR_MX, await signed(odd, 'acb.com.vn'))
      for (const copy of [mail, mail.replaceAll('\r\n', '\n')])
        expect((await shop.relay(copy)).body).to.deep.equal(NO_CODE)
      const [copy, first] = await unmatched()
      const match = async (id: number) => {
        const { id: transactionId } = await shop.pay()
        return matchBankMail(ctx, operator('linh'), { id, transactionId, amount: 99_000, note })
      }
      expect(await match(first!.id)).to.include(PROCESSED)
      expect(await failureOf(match(copy!.id))).to.have.property('code', 'invalid_request')
      expect(await unmatched()).to.deep.equal([])
    })

    it('is new money if the bank writes the same words in another mail after it was decided, and none in the same mail', async () => {
      await open()
      const { ctx } = shop.service
      const arrive = (id: string) => answerTo('ACB', TRANSFER, { 'Message-ID': id }, 'you received money')
      const match = async (id: number) => {
        const { id: transactionId } = await shop.pay()
        return matchBankMail(ctx, operator('linh'), { id, transactionId, amount: 99_000, note })
      }
      await arrive('<words-1@acb.com.vn>')
      await match((await unmatched())[0]!.id)
      await arrive('<words-1@acb.com.vn>')
      expect(await unmatched()).to.deep.equal([])
      for (let times = 0; times < 2; times += 1) await arrive('<words-2@acb.com.vn>')
      const [copy, mail] = await unmatched()
      await perform(ctx, operator('linh'), closeBankMail, { id: mail!.id, note }, null)
      expect(await failureOf(match(copy!.id))).to.have.property('code', 'invalid_request')
      await arrive('<words-2@acb.com.vn>')
      expect(await unmatched()).to.deep.equal([])
      await arrive('<words-3@acb.com.vn>')
      expect(await match((await unmatched())[0]!.id)).to.include(PROCESSED)
    })

    it('is no new money if the same mail names its movement in another copy, before its money was decided or after', async () => {
      await open()
      const { ctx } = shop.service
      const [payment, other] = [await shop.pay(), await shop.pay()]
      const transfer = transferFor(payment)
      const fields = { 'Message-ID': '<twice@acb.com.vn>' }
      await answerTo('ACB', transfer, fields, 'you received money')
      await answerTo('ACB', transfer, { ...fields, Subject: 'Your ticket' })
      const [named, unnamed] = await unmatched()
      const target = { id: unnamed!.id, transactionId: payment.id, amount: payment.amount, note }
      expect(await matchBankMail(ctx, operator('linh'), target)).to.include(PROCESSED)
      const again = { id: named!.id, transactionId: other.id, note }
      const refusal = await failureOf(matchBankMail(ctx, operator('linh'), again))
      expect(refusal).to.have.property('message').that.includes('was booked before')
      expect(await answerTo('ACB', transfer, fields)).to.deep.equal({ status: 'duplicate' })
      await answerTo('ACB', transfer, { ...fields, Subject: 'Your other ticket' })
      expect((await unmatched()).map(({ id }) => id)).to.deep.equal([named!.id])
      expect(await shop.transaction(payment.id)).to.include({ amountReceived: payment.amount, flagReason: null })
    })

    it('keeps the amount that could be read: another one is refused', async () => {
      await open()
      const { ctx } = shop.service
      const payment = await shop.pay()
      await answerTo('ACB', transferFor(payment), { From: 'help@acb.com.vn' })
      const [mail] = await unmatched()
      expect(mail!.suggestions.map(({ transaction_id: id }) => id)).to.deep.equal([payment.id])
      const target = { id: mail!.id, transactionId: payment.id }
      expect(await failureOf(matchBankMail(ctx, operator('linh'), { ...target, note, amount: 1 }))).to.include({
        field: 'amount',
      })
      const { effects } = await previewMatch(ctx, operator('linh'), target)
      expect(effects[0]).to.include("check the account's statement first").and.include('may quote anybody')
      expect(await matchBankMail(ctx, operator('linh'), { ...target, note })).to.include(PROCESSED)
    })

    it('is closed with a reason: it waits no more, is matched no more, and is kept', async () => {
      await open()
      const { ctx } = shop.service
      const payment = await shop.pay()
      await answerTo('ACB', TRANSFER, {}, 'news')
      const [mail] = await unmatched()
      expect(
        await failureOf(perform(ctx, operator('linh'), closeBankMail, { id: mail!.id, note: '' }, null)),
      ).to.include({
        field: 'note',
      })
      expect(await failureOf(perform(ctx, operator('linh'), closeBankMail, { id: 999_999, note }, null))).to.include({
        code: 'not_found',
      })
      await perform(ctx, operator('linh'), closeBankMail, { id: mail!.id, note: 'news of the bank' }, null)
      expect(await unmatched()).to.deep.equal([])
      const kept = await ctx.db.one(bankMails, '')
      expect(kept?.closedAt).to.deep.equal(ctx.clock.now())
      const [entry] = await listAuditEntries(ctx.db, { limit: 1 })
      expect(entry).to.deep.include({
        actor: 'linh',
        action: 'bank-mail.close',
        subject: `bank mail ${mail!.id}`,
        reason: 'news of the bank',
      })
      for (const late of [
        () => matchBankMail(ctx, operator('linh'), { id: mail!.id, transactionId: payment.id, note, amount: 1 }),
        () => perform(ctx, operator('linh'), closeBankMail, { id: mail!.id, note }, null),
      ]) {
        const refused = (await failureOf(late())) as Error
        expect(refused).to.include({ code: 'invalid_request', field: 'id' })
        expect(refused.message).to.include('was closed')
      }
    })

    it('is closed or matched, never both, when two do it at once', async () => {
      await open()
      const { ctx } = shop.service
      const payment = await shop.pay()
      await answerTo('ACB', transferFor(payment, { content: 'no code' }), {})
      const [mail] = await unmatched()
      const outcomes = await Promise.allSettled([
        matchBankMail(ctx, operator('linh'), { id: mail!.id, transactionId: payment.id, note }),
        perform(ctx, operator('mai'), closeBankMail, { id: mail!.id, note }, null),
      ])
      expect(outcomes.map(({ status }) => status).sort()).to.deep.equal(['fulfilled', 'rejected'])
      const isMatched = outcomes[0].status === 'fulfilled'
      const kept = await ctx.db.one(bankMails, '')
      expect([kept?.matchedAt !== null, kept?.closedAt !== null]).to.deep.equal([isMatched, !isMatched])
      expect((await shop.transaction(payment.id)).amountReceived).to.equal(isMatched ? payment.amount : 0)
    })
  })
})
