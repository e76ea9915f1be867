import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { MailReader } from '#bank-mail/mail-reader.ts'
import { BANK_MAILS, bankMail, OUR_MX, TRUST, type MailBank } from '../support/bank-mails.ts'

/** As much as the service takes, in base64 within 256 KB. */
const FULL = 190_000

const fill = (piece: string, bytes = FULL): string => piece.repeat(Math.ceil(bytes / Buffer.byteLength(piece)))

const found = (results: string): string => `Authentication-Results: ${OUR_MX}; ${results}\r\n`

/** A mail that passes for the bank's, so that all of it is looked at; fields that are given replace the usual ones. */
function passed(bank: MailBank, body: string, fields: Readonly<Record<string, string>> = {}, above = ''): string {
  const usual = { 'Content-Type': 'text/plain; charset=utf-8', 'Content-Transfer-Encoding': null }
  const mail = bankMail(bank, undefined, { ...usual, ...fields }, '')
  const header = mail.slice(0, mail.indexOf('\r\n\r\n') + 4)
  return above + found(`dkim=pass header.d=${BANK_MAILS[bank].domain}`) + header + body
}

const ofType = (type: string, body: string): string => passed('TIMO', body, { 'Content-Type': type })
const signedWith = (tags: string): string => passed('TIMO', 'x', {}, `DKIM-Signature: ${tags}\r\n`)

/** Each says what is repeated in it. */
const HOSTILE: Record<string, string> = {
  '“many lines”': passed('TIMO', fill('\n')),
  '“many marks on a letter”': passed('ACB', `a${fill('\u0301', FULL / 2)}${fill('\u0316', FULL / 2)}`),
  '“many results”':
    found(fill('dkim=fail; ').slice(0, -2)) + signedWith('v=1; a=x; s=mail; d=timo.vn; h=from; bh=x; b=x'),
  '“many signers”':
    found(Array.from({ length: 6000 }, (_, index) => `dkim=pass header.d=a${index}.example`).join('; ')) +
    passed('TIMO', 'x'),
  '“many fields of results”': found('dkim=pass header.d=timo.vn').repeat(900) + passed('TIMO', 'x'),
  '“a long b=”': signedWith(`v=1; a=x; s=mail; d=timo.vn; h=from:subject; bh=x; b=${fill('A ')}`),
  '“a long h=”': signedWith(`v=1; a=x; s=mail; d=timo.vn; bh=x; b=x; h=${fill('a:')}`),
  '“a long i=”': signedWith(`v=1; a=x; s=mail; d=timo.vn; h=from:subject; bh=x; b=x; i=${fill('a.')}@`),
  '“open elements, and ends of others”': ofType('text/html', fill('<b>', FULL / 2) + fill('</p>', FULL / 2)),
  '“parts”': ofType('multipart/mixed; boundary=x', fill('--x\r\n')),
  '“parts with text”': ofType('multipart/mixed; boundary=x', fill('--x\r\nContent-Type: text/html\r\n\r\n<p>\r\n')),
  '“parameters”': ofType(`text/plain; ${fill('a*0=x;')}`, 'x'),
}
for (const piece of ['(', '(a ', '((a) ', '()', '(\\', '"', ' ', 'from ', 'by ', 'from a by ']) {
  HOSTILE[`Received: ${piece}`] = passed('TIMO', 'x', {}, `Received: from x ${fill(piece)}\r\n`)
  HOSTILE[`Received: ${piece} (of the longest that is read)`] = passed(
    'TIMO',
    'x',
    {},
    fill(`Received: from x ${fill(piece, 1900)}\r\n`),
  )
}
for (const piece of ['(', '(a)', '("', '"', '\\"', 'a.', 'test ']) {
  HOSTILE[`Authentication-Results: ${piece}`] = found(`dkim=pass ${fill(piece)}`) + passed('TIMO', 'x')
  HOSTILE[`From: ${piece}`] = passed('TIMO', 'x', { From: `${fill(piece)}support@timo.vn` })
  HOSTILE[`Subject: ${piece}`] = passed('TIMO', 'x', { Subject: fill(piece) })
}
for (const piece of ['a=b;', ';', ' ', '=']) {
  HOSTILE[`DKIM-Signature: ${piece}`] = signedWith(fill(piece))
  HOSTILE[`ARC-Seal: ${piece}`] = found('arc=pass') + passed('TIMO', 'x', {}, `ARC-Seal: ${fill(piece)}\r\n`)
}
for (const piece of [
  '<',
  '</',
  '<a href="',
  '<!--',
  '<style>',
  '<table><tr>',
  '<p>',
  '<b>',
  '<svg>',
  '&',
  '&#x',
  'display:',
]) {
  HOSTILE[`HTML: ${piece}`] = ofType('text/html', fill(piece))
}
for (const encoding of ['base64', 'quoted-printable', '8bit']) {
  for (const piece of ['=', '=\r\n', 'A', '==', '--x\r\n']) {
    HOSTILE[`${encoding}: ${JSON.stringify(piece)}`] = passed('TIMO', fill(piece), {
      'Content-Transfer-Encoding': encoding,
    })
  }
}

/** The beginnings that the readers look for, and what stands behind them. */
const PIECES: Readonly<Record<MailBank, readonly string[]>> = {
  ACB: [
    'ACB trân trọng thông báo tài khoản 1234 của Quý khách ',
    'tài khoản 1234 của Quý khách ',
    'tài khoản 1234 của Quý khách Giao dịch mới nhất: Ghi có + 1 VND. ',
    ' Giao dịch mới nhất: Ghi có + 1',
    'your 1234 account balance ',
    'Latest transaction: Credit + 1',
    ' GD A',
    '. ',
    '----- ',
    'Dear Customer,',
  ],
  TIMO: [
    'Tài khoản ',
    'Tài khoản a vừa tăng 1',
    'Tài khoản x vừa tăng 1 VND vào 01/01/2026 00:00. Số dư hiện tại: 1',
    'Your a has been credited 1',
    '1',
  ],
  CAKE: [
    'Tài khoản nhận 1234',
    'Số tiền + 1',
    'Nội dung giao dịch ',
    'Mã giao dịch AAAA',
    'Ngày giờ giao dịch 01/01/2026',
  ],
  MB: [
    'Tài khoản ghi có a- 1234',
    'Nội dung chuyển tiền a',
    'Nội dung chuyển tiền a Tình trạng ',
    'Tình trạng ',
    'Số tiền giao dịch (VND) 1,',
  ],
}
/** A notice of ACB's with a text that no payer can write. */
const longContent = (content: string): string =>
  `ACB trân trọng thông báo tài khoản 27550951 của Quý khách. Số dư mới 1. Giao dịch mới nhất:Ghi có +1,000.00 VND. Nội dung giao dịch: a${content}x ----- Dear Customers, your 27550951 account balance. Updated account balance: 1. Latest transaction: Credit +1,000.00 VND. Content: a.`
for (const [bank, pieces] of Object.entries(PIECES) as [MailBank, readonly string[]][]) {
  for (const piece of pieces) HOSTILE[`${bank}: ${piece}`] = passed(bank, fill(piece))
}
for (const piece of ['.', ' GD 0', 'PG23456789 '])
  HOSTILE[`ACB’s notice with ${piece}`] = passed('ACB', longContent(fill(piece)))

const GMAIL = `${found('dkim=pass header.d=google.com')}From: forwarding-noreply@google.com\r\nSubject: `
for (const piece of ['(#1', 'a', 'a@', '.a@b', 'https://mail.google.com/mail/vf-', 'Confirmation code: 1']) {
  HOSTILE[`Gmail’s question: ${piece}`] = `${GMAIL}x\r\n\r\n${fill(piece)}`
  HOSTILE[`Gmail’s question, in its subject: ${piece}`] = `${GMAIL}${fill(piece)}\r\n\r\nx`
}

/** The reader answers null for a mail that it had to give up after two seconds; each of these takes less than a tenth of one. */
describe('a mail of 256 KB that was made to be expensive', () => {
  let reader: MailReader
  before(() => (reader = new MailReader(TRUST)))
  after(() => reader.close())

  for (const [what, mail] of Object.entries(HOSTILE)) {
    it(`is answered in time: ${what}`, async () => {
      expect(await reader.read(Buffer.from(mail))).to.not.equal(null)
    })
  }
})
