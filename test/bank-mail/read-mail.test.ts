import { expect } from 'chai'
import { describe, it } from 'mocha'
import { readMail } from '#bank-mail/read-mail.ts'
import { newTransferCode } from '#providers/bank-transfer/transfer-code.ts'
import {
  alternativeMail,
  BANK_MAILS,
  bankMail,
  forwardedMail,
  genuineMail,
  OUR_MX,
  receivedBy,
  sealedBy,
  SEALER,
  sealedMail,
  signed,
  takenBy,
  TRANSFER,
  TRUST,
  type MailBank,
} from '../support/bank-mails.ts'
import { KINDS_OF_ATTACK, type Attack } from './attacks.ts'

const CODE = newTransferCode()
const PAID = { ...TRANSFER, content: CODE }
const BANKS = Object.keys(BANK_MAILS) as MailBank[]

const read = (mail: string, trust = TRUST) => readMail(Buffer.from(mail), trust)

describe('a bank mail', () => {
  for (const bank of BANKS) {
    it(`of ${bank} is trusted with the bank's own signature, and read`, async () => {
      const reading = await read(await genuineMail(bank, PAID))
      expect(reading).to.deep.include({ bank, trust: 'direct' })
      expect(reading.credit).to.deep.include({ amount: TRANSFER.amount, codes: [CODE] })
      expect(reading.credit?.account).to.equal(bank === 'TIMO' ? null : TRANSFER.account)
      expect(reading.credit?.reference).to.match(/./)
      expect(reading.messageIdHash).to.match(/^[0-9a-f]{64}$/)
      expect(reading.contentHash).to.match(/^[0-9a-f]{64}$/)
    })

    it(`of ${bank} is trusted by way of a trusted forwarder and of a trusted sealer`, async () => {
      expect(await read(await forwardedMail(bank, PAID))).to.deep.include({ bank, trust: 'forwarder' })
      expect(await read(await sealedMail(bank, PAID))).to.deep.include({ bank, trust: 'arc' })
    })
  }

  it('is trusted by way of several sealers that are all trusted', async () => {
    const mail = await signed(bankMail('TIMO', PAID), 'timo.vn')
    const twice = await receivedBy(OUR_MX, await sealedBy('relay.example', await sealedBy(SEALER, mail)))
    expect(await read(twice, { ...TRUST, trustedArcSealers: [SEALER, 'relay.example'] })).to.include({ trust: 'arc' })
    expect(await read(twice)).to.include({ trust: null })
  })

  it('is trusted if the server adds its results below its own Received', async () => {
    const mail = await signed(bankMail('TIMO', PAID), 'timo.vn')
    expect(await read(await receivedBy(OUR_MX, mail, { belowReceived: true }))).to.include({ trust: 'direct' })
  })

  it('is trusted with nested comments in the server’s own Received of at most 2,000 characters', async () => {
    const mail = await signed(bankMail('TIMO', PAID), 'timo.vn')
    const received = (comment: string) =>
      `Received: from a (${'('.repeat(60)}b\\)${')'.repeat(60)} [203.0.113.7])\r\n by ${OUR_MX} (${comment}) with ESMTPS; x\r\n`
    const results = `Authentication-Results: ${OUR_MX}; dkim=pass header.d=timo.vn\r\n`
    const longest = 'c'.repeat(2000 - received('').length + 'Received:\r\n\r\n'.length)
    expect(await read(received(longest) + results + mail)).to.include({ trust: 'direct' })
    expect(await read(received(`${longest}c`) + results + mail)).to.include({ trust: null })
  })

  it('is trusted after a second server of the seller’s', async () => {
    const mail = await genuineMail('TIMO', PAID)
    expect(await read(takenBy(OUR_MX, mail))).to.include({ trust: 'direct' })
  })

  it('is trusted under a signature of a subdomain of the bank', async () => {
    const mail = await receivedBy(OUR_MX, await signed(bankMail('TIMO', PAID), 'mail.timo.vn'))
    expect(await read(mail)).to.include({ trust: 'direct' })
  })

  it('is trusted with a second signature beside the bank’s, as CAKE’s mails have it', async () => {
    const mail = await signed(await signed(bankMail('CAKE', PAID), 'cake.vn'), 'amazonses.com')
    expect(await read(await receivedBy(OUR_MX, mail))).to.include({ trust: 'direct' })
  })

  it('is trusted without a signature if the server’s own results stand above every Received', async () => {
    const found = `Authentication-Results: ${OUR_MX}; dkim=pass header.d=timo.vn\r\n`
    expect(await read(found + takenBy(OUR_MX, bankMail('TIMO', PAID)))).to.include({ trust: 'direct' })
  })

  it('is trusted without a signature below the server’s own Received with a single result in the form that servers remove', async () => {
    const below = (results: string) => read(takenBy(OUR_MX, results + bankMail('TIMO', PAID)))
    const plain = `Authentication-Results: ${OUR_MX}; spf=pass smtp.mailfrom=timo.vn; dkim=pass header.d=timo.vn\r\n`
    expect(await below(plain)).to.include({ trust: 'direct' })
    expect(await below(plain.replace('; spf', ' 1; spf'))).to.include({ trust: null })
    expect(await below(plain + plain)).to.include({ trust: null })
  })

  it('is read the same with the line ends and the first line that a mail server gives a pipe', async () => {
    const mail = await genuineMail('TIMO', PAID)
    const piped = `From support@timo.vn Fri Nov 13 06:37:10 2026\n${mail.replaceAll('\r\n', '\n')}`
    expect((await read(piped)).credit).to.deep.equal((await read(mail)).credit)
  })

  it('is read if text part and HTML part agree', async () => {
    const html = BANK_MAILS.TIMO.body(PAID)
    const text = html.replace(/<style>.*<\/style>|<title>.*<\/title>|<[^>]+>/g, ' ').replaceAll('&nbsp;', '\u00a0')
    const mail = await receivedBy(OUR_MX, await signed(alternativeMail('TIMO', text, html), 'timo.vn'))
    expect((await read(mail)).credit).to.deep.include({ amount: TRANSFER.amount, codes: [CODE] })
  })

  it('of no bank that is read is none of ours, however genuine', async () => {
    const mail = bankMail('TIMO', PAID, { From: 'VCBDigibank@info.vietcombank.com.vn' })
    const reading = await read(await receivedBy(OUR_MX, await signed(mail, 'info.vietcombank.com.vn')))
    expect(reading).to.deep.include({ bank: null, trust: null, credit: null })
  })

  it('has the same content however it came, and another Message-ID does not change its movement', async () => {
    const mail = await signed(bankMail('ACB', PAID), 'acb.com.vn', { headerList: 'From:Subject:Content-Type' })
    const [one, other] = [
      await read(await receivedBy(OUR_MX, mail)),
      await read(
        await receivedBy(OUR_MX, await sealedBy(SEALER, mail.replace(/^Message-ID: .*/m, 'Message-ID: <x@y>'))),
      ),
    ]
    expect(one.contentHash).to.equal(other.contentHash)
    expect(one.messageIdHash).not.to.equal(other.messageIdHash)
    expect(one.credit?.reference).to.equal(other.credit?.reference)
  })
})

describe('a forged bank mail', () => {
  const victim = { code: CODE, amount: TRANSFER.amount, account: TRANSFER.account }
  const gmailToo = { ...TRUST, trustedForwarders: [...TRUST.trustedForwarders, 'gmail.com'] }
  for (const [name, attack] of KINDS_OF_ATTACK.flatMap(Object.entries<Attack>)) {
    it(`is not taken for a payment: ${name}`, async () => {
      const reading = await read(await attack(victim), gmailToo)
      expect(reading.trust === null || reading.credit === null, JSON.stringify(reading)).to.equal(true)
    })
  }
})
