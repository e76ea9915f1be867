import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { listBankMails } from '#bank-mail/list-bank-mails.ts'
import { listForwardingRequests } from '#bank-mail/list-forwarding-requests.ts'
import { bankMails } from '#bank-mail/store.ts'
import { formatTimestamp } from '#shared/time.ts'
import { OUR_MX, receivedBy, signed, takenBy } from '../support/bank-mails.ts'
import { aBankShop, type BankShop } from './bank-shop.ts'

const LINK = 'https://mail-settings.google.com/mail/vf-%5BANGjdJ8abc_DEF%5D-xyZ12'
/** What Gmail's signature covers, which is not how the body is to be read. */
const COVERED = { headerList: 'to:from:subject:message-id:date:mime-version' }

interface Wording {
  readonly from?: string
  readonly subject?: string
  readonly body?: string
}

/** Gmail's question, in the words of its English mail, without its signature. */
function question({
  from = 'Gmail Team <forwarding-noreply@google.com>',
  subject = '(#123456789) Gmail Forwarding Confirmation - Receive Mail from shop.owner@gmail.com',
  body = [
    'shop.owner@gmail.com has requested to automatically forward mail to your email address bank@pay.example.',
    'Confirmation code: 123456789',
    'To allow shop.owner@gmail.com to automatically forward mail to your address, please click the link below to confirm the request:',
    '',
    LINK,
    '',
    'If you do not approve of this request, no further action is required. To cancel: https://mail-settings.google.com/mail/uf-%5BANGjdJ8',
  ].join('\r\n'),
}: Wording = {}): string {
  return [
    `From: ${from}`,
    'To: bank@pay.example',
    `Subject: ${subject}`,
    'Date: Fri, 13 Nov 2026 06:37:10 +0000',
    'Message-ID: <forward.1@google.com>',
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset=utf-8',
    '',
    body,
    '',
  ].join('\r\n')
}

const genuine = async (wording?: Wording) => receivedBy(OUR_MX, await signed(question(wording), 'google.com', COVERED))

describe('Gmail’s question whether it may forward a mailbox to the relay', () => {
  let shop: BankShop
  const open = async () => (shop = await aBankShop())
  const asked = () => listForwardingRequests(shop.service.ctx)

  afterEach(() => shop.service.stop())

  it('is ignored as not_bank_email, and shows operators code, link and whose mailbox it is, as far as they need', async () => {
    await open()
    const answer = await shop.relay(await genuine())
    expect(answer.body).to.deep.equal({ status: 'ignored', reason: 'not_bank_email' })
    const [request, ...others] = await asked()
    expect(others).to.deep.equal([])
    expect(request).to.deep.equal({
      id: request!.id,
      received_at: formatTimestamp(shop.service.ctx.clock.now()),
      bank_account_id: shop.account.id,
      mailbox: 's…@gmail.com',
      code: '123456789',
      link: LINK,
    })
    const everything = JSON.stringify(await shop.service.ctx.db.all(bankMails, ''))
    expect(everything + shop.service.ctx.logged.join('')).to.not.include('shop.owner')
    expect(shop.service.ctx.logged.join('')).to.not.match(/123456789|mail-settings/)
    expect(JSON.stringify(await listBankMails(shop.service.ctx))).to.not.match(/123456789|mail-settings/)
  })

  it('is read in other languages, and if only the link is in it', async () => {
    await open()
    await shop.relay(await genuine({ subject: '=?utf-8?B?KEdtYWlsKSDovazlj5Hnoa7orqQ=?=', body: `…\r\n${LINK}\r\n` }))
    await shop.relay(
      await genuine({ subject: '(#987654321) Gmail', body: 'https://mail.google.com/mail/vf-abcdefgh12' }),
    )
    const found = (await asked()).map(({ code, link }) => ({ code, link }))
    expect(found).to.have.deep.members([
      { code: null, link: LINK },
      { code: '987654321', link: 'https://mail.google.com/mail/vf-abcdefgh12' },
    ])
  })

  it('is not shown if our server did not find it to be Google’s, or its sender does not know an account’s address', async () => {
    await open()
    await shop.relay(takenBy(OUR_MX, question()))
    await shop.relay(await receivedBy('mx.else.example', await signed(question(), 'google.com', COVERED)))
    await shop.relay(await receivedBy(OUR_MX, await signed(question(), 'evil.example')))
    await shop.relay(await genuine({ from: 'Gmail <forwarding-noreply@google.com.evil.example>' }))
    await shop.relay(await genuine({ from: 'Somebody <somebody@google.com>' }))
    await shop.relay(await genuine(), 'bank+0000000000@pay.example')
    expect(await asked()).to.deep.equal([])
  })

  it('never shows an address of another host, nor one that would refuse', async () => {
    await open()
    for (const link of [
      'https://mail-settings.google.com.evil.example/mail/vf-abcdefgh',
      'http://mail-settings.google.com/mail/vf-abcdefgh',
      'https://evil.example/https:/mail.google.com/mail/vf-abcdefgh',
      'https://mail-settings.google.com/mail/uf-abcdefgh',
      'https://mail-settings.google.com/other/vf-abcdefgh',
    ]) {
      await shop.relay(await genuine({ subject: 'x', body: link }))
    }
    expect(await asked()).to.deep.equal([])
  })

  it('is shown for seven days', async () => {
    await open()
    await shop.relay(await genuine())
    shop.service.ctx.clock.advance('7d')
    expect(await asked()).to.have.length(1)
    shop.service.ctx.clock.advance('1s')
    expect(await asked()).to.deep.equal([])
  })
})
