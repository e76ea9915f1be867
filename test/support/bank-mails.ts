import { generateKeyPairSync } from 'node:crypto'
import { authenticate, dkimSign, sealMessage } from 'mailauth'

/** Mails as banks send and mail servers relay them, with real signatures and real checks. */

/** The mailbox that the bank writes to. */
export const MAILBOX = 'seller@gmail.example'
/** The receiving mail server that the tests' settings trust. */
export const OUR_MX = 'mx.pay.example'
/** A mail server that forwards and seals what it forwards. */
export const SEALER = 'sealer.example'
export const FORWARDER = 'forwarder.example'

export const TRUST = { authservIds: [OUR_MX], trustedForwarders: [FORWARDER], trustedArcSealers: [SEALER] }

export interface Transfer {
  readonly amount: number
  /** The payer's text. */
  readonly content: string
  /** The account that is credited. */
  readonly account: string
  /** The unique number of the movement. */
  readonly movement: number
}

export const TRANSFER: Transfer = { amount: 99_000, content: 'TIEN HANG', account: '27550951', movement: 500_000_001 }

const withCommas = (amount: number): string => amount.toLocaleString('en-US')
const withDots = (amount: number): string => amount.toLocaleString('de-DE')

/** How each bank reports a transfer: the sender, and the body of a mail for money in (`+`) or out (`-`). */
export const BANK_MAILS = {
  ACB: {
    from: 'ACB <mailalert@acb.com.vn>',
    domain: 'acb.com.vn',
    subject: 'Thông báo thay đổi số dư tài khoản',
    type: 'text/plain',
    body: (transfer: Transfer, sign: '+' | '-' = '+') => {
      const money = `${sign}${withCommas(transfer.amount)}.00 VND`
      const text = `${transfer.content} GD 6256IBT${transfer.movement} 130926-13:37:09`
      return [
        `ACB trân trọng thông báo tài khoản *${transfer.account}* của Quý khách đã thay đổi số dư như sau:`,
        'Số dư mới của tài khoản trên là: *10,000.00* VND tính đến 13/09/2026.',
        `Giao dịch mới nhất:*${sign === '+' ? 'Ghi có' : 'Ghi nợ'} ${money}*.`,
        `Nội dung giao dịch: *${text}*.`,
        '-----',
        `Dear Customers, ACB respectfully updates your ${transfer.account} account balance as follows:`,
        `Updated account balance: 10,000.00 VND up to 13/09/2026. Latest transaction: ${sign === '+' ? 'Credit' : 'Debit'} ${money}.`,
        `Content: ${text}.`,
      ].join('\r\n')
    },
  },
  TIMO: {
    from: 'Timo Support <support@timo.vn>',
    domain: 'timo.vn',
    subject: 'Thông báo thay đổi số dư tài khoản',
    type: 'text/html',
    body: (transfer: Transfer, sign: '+' | '-' = '+') =>
      [
        '<html><head><title>Timo</title><style>p { color: #333 }</style></head><body>',
        '<p>NGUYEN VAN A th&acirc;n m&#7871;n,</p>',
        `<p>Tài khoản <b>Spend Account</b> vừa ${sign === '+' ? 'tăng' : 'giảm'} <b>${withDots(transfer.amount)} VND</b> vào 16/09/2026 09:49.`,
        `Số dư hiện tại: ${withDots(3_000_000 + transfer.movement)}&nbsp;VND.<br>`,
        `Mô tả: MBVCB.${transfer.movement}.ABCDEFGH12345678.${transfer.content}.CT tu 9876543210 NGUYEN VAN A toi 0123456789 NGUYEN VAN A tai BVBANK TIMO.</p>`,
        '</body></html>',
      ].join('\r\n'),
  },
  CAKE: {
    from: 'CAKE <no-reply@cake.vn>',
    domain: 'cake.vn',
    subject: '[CAKE] Thông báo giao dịch thành công',
    type: 'text/html',
    body: (transfer: Transfer, sign: '+' | '-' = '+') => {
      const rows = [
        ['Tài khoản nhận', `${transfer.account} - Tài khoản thanh toán`],
        ['Tài khoản chuyển', '123456***7890'],
        ['Tên người chuyển', 'NGUYEN VAN A'],
        ['Ngân hàng chuyển', 'VCB'],
        ['Loại giao dịch', 'Chuyển tiền nhanh 24/7'],
        ['Mã giao dịch', `${transfer.movement}`],
        ['Ngày giờ giao dịch', '20/09/2026, 18:28:07'],
        ['Số tiền', `${sign}${withDots(transfer.amount)} đ`],
        ['Phí giao dịch', '0 đ'],
        ['Nội dung giao dịch', transfer.content],
      ]
      return `<table>${rows.map(([label, value]) => `<tr><td>${label}</td><td>${value}</td></tr>`).join('\r\n')}</table>`
    },
  },
  MB: {
    from: 'MB eBanking <mbebanking@mbbank.com.vn>',
    domain: 'mbbank.com.vn',
    subject: 'Thông báo giao dịch',
    type: 'text/html',
    body: (transfer: Transfer, sign: '+' | '-' = '+') => {
      const rows = [
        ['Ngày, giờ giao dịch', '27-11-2025 08:50:03'],
        ['Loại giao dịch', 'Chuyển tiền'],
        ['Số tham chiếu', `25112708${transfer.movement}`],
        sign === '+'
          ? ['Tài khoản ghi có', `NGUYEN VAN A - ${transfer.account} (VND)`]
          : ['Tài khoản trích nợ', `NGUYEN VAN A - ${transfer.account} (VND)`],
        ['Số tiền giao dịch (VND)', `${withCommas(transfer.amount)}.00`],
        ['Nội dung chuyển tiền', transfer.content],
        ['Tình trạng', 'Giao dịch thành công'],
      ]
      return `<table>${rows.map(([label, value]) => `<tr><td><b>${label}</b></td><td>${value}</td></tr>`).join('\r\n')}</table>`
    },
  },
} as const
export type MailBank = keyof typeof BANK_MAILS

let messages = 0

/** A mail as it leaves the bank, unsigned. `fields` replaces or adds header fields; null removes one. */
export function bankMail(
  bank: MailBank,
  transfer: Transfer = TRANSFER,
  fields: Readonly<Record<string, string | null>> = {},
  body: string = BANK_MAILS[bank].body(transfer),
): string {
  const { from, domain, subject, type } = BANK_MAILS[bank]
  messages += 1
  const usual: Record<string, string | null> = {
    From: from,
    To: MAILBOX,
    Subject: `=?utf-8?B?${Buffer.from(subject).toString('base64')}?=`,
    Date: 'Fri, 13 Nov 2026 06:37:10 +0000',
    'Message-ID': `<${messages}.${transfer.movement}@${domain}>`,
    'MIME-Version': '1.0',
    'Content-Type': `${type}; charset=utf-8`,
    'Content-Transfer-Encoding': 'base64',
  }
  const header = Object.entries({ ...usual, ...fields }).filter(([, value]) => value !== null)
  const encoded = Buffer.from(body).toString('base64').replace(/.{76}/g, '$&\r\n')
  return `${header.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${encoded}\r\n`
}

/** The mail with both a text part and an HTML part. */
export function alternativeMail(bank: MailBank, text: string, html: string): string {
  const part = (type: string, body: string): string =>
    `--part\r\nContent-Type: ${type}; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n${Buffer.from(body).toString('base64')}\r\n`
  const fields = { 'Content-Type': 'multipart/alternative; boundary=part', 'Content-Transfer-Encoding': null }
  const mail = bankMail(bank, TRANSFER, fields, '')
  return `${mail.slice(0, mail.indexOf('\r\n\r\n') + 4)}${part('text/plain', text)}${part('text/html', html)}--part--\r\n`
}

/** As short as DKIM allows (RFC 8301), because the tests sign with it some thousand times. */
const newKey = () =>
  generateKeyPairSync('rsa', {
    modulusLength: 1024,
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })

/** The key of every domain in DNS. */
export const KEY = newKey()
/** The key of a stranger, which is not in DNS. */
export const STRANGERS_KEY = newKey()

/** The mail with a signature of the domain, by the key that `publicKeys` publishes. */
export async function signed(
  mail: string,
  domain: string,
  options: { readonly headerList?: string; readonly maxBodyLength?: number; readonly selector?: string } = {},
): Promise<string> {
  const signature = { signingDomain: domain, selector: 'mail', privateKey: KEY.privateKey, ...options }
  const { signatures, errors } = await dkimSign(mail, { ...signature, signatureData: [signature] })
  if (!signatures || errors.length > 0) throw new Error(`not signed: ${JSON.stringify(errors)}`)
  return `${signatures}${mail}`
}

/** Answers as DNS would: every domain publishes the same key under every selector, for tests (`t=y`) under `test`. */
function publicKeys(name: string, type: string): Promise<string[][]> {
  const match = /^([^.]+)\._domainkey\./.exec(name)
  if (type !== 'TXT' || !match) return Promise.reject(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }))
  const flags = match[1] === 'test' ? 't=y; ' : ''
  return Promise.resolve([[`v=DKIM1; k=rsa; ${flags}p=${KEY.publicKey.toString('base64')}`]])
}

interface Hop {
  /** The sending host in the server's `Received`. */
  readonly from?: string
  /** Whether the server's results are below its own `Received` rather than above. */
  readonly belowReceived?: boolean
}

/** The mail after a server has received and checked it, with the results in its header. */
export async function receivedBy(server: string, mail: string, hop: Hop = {}): Promise<string> {
  const { headers } = await checkedBy(server, mail)
  return traced(server, headers, mail, hop)
}

/** The mail after a server has received it without recording results, as many do for unsigned mails. */
export function takenBy(server: string, mail: string): string {
  return traced(server, '', mail, {})
}

function traced(server: string, results: string, mail: string, hop: Hop): string {
  const from = hop.from ?? 'mta.bank.example'
  const received = `Received: from ${from} (unknown [203.0.113.7])\r\n by ${server} (Postfix) with ESMTPS id 4QYx1;\r\n Fri, 13 Nov 2026 06:37:12 +0000 (UTC)\r\n`
  return hop.belowReceived ? received + results + mail : results + received + mail
}

async function checkedBy(server: string, mail: string) {
  return authenticate(mail, {
    mta: server,
    ip: '203.0.113.7',
    helo: 'mta.bank.example',
    sender: 'bounce@bank.example',
    resolver: publicKeys,
    disableBimi: true,
  })
}

/** The mail after a server has checked it, changed it so that signatures fail, and signed it as its own. */
export async function forwardedBy(server: string, mail: string): Promise<string> {
  return signed(changed(await receivedBy(`mx.${server}`, mail)), server)
}

interface Seal {
  /** The results in the seal, instead of the real ones. */
  readonly found?: string
  readonly domain?: string
  readonly privateKey?: string
}

/** The mail after a server has checked it, changed it, and sealed the results (ARC). */
export async function sealedBy(server: string, mail: string, seal: Seal = {}): Promise<string> {
  const { headers, arc } = await checkedBy(`mx.${server}`, mail)
  const results = /^Authentication-Results: (.*(?:\r\n[ \t].*)*)/m.exec(headers)![1]!
  const changedMail = changed(traced(`mx.${server}`, headers, mail, {}))
  const fields = await sealMessage(changedMail, {
    signingDomain: seal.domain ?? server,
    selector: 'arc',
    privateKey: seal.privateKey ?? KEY.privateKey,
    authResults: seal.found ?? results,
    cv: arc && arc.status.result === 'pass' ? 'pass' : 'none',
  })
  if (fields.length === 0) throw new Error('not sealed')
  return fields.toString() + changedMail
}

/** Marks the subject, as mailing lists and scanners do, so that the author's signature fails. */
function changed(mail: string): string {
  return mail.replace(/^Subject: /m, 'Subject: [seen] ')
}

/** The bank's own mail, signed by it, as our mail server delivers it. */
export async function genuineMail(
  bank: MailBank,
  transfer: Transfer = TRANSFER,
  fields: Readonly<Record<string, string | null>> = {},
): Promise<string> {
  return receivedBy(OUR_MX, await signed(bankMail(bank, transfer, fields), BANK_MAILS[bank].domain))
}

/** The bank's mail through a server that seals it; the bank's own signature fails at ours. */
export async function sealedMail(
  bank: MailBank,
  transfer: Transfer = TRANSFER,
  sealer: string = SEALER,
): Promise<string> {
  const mail = await signed(bankMail(bank, transfer), BANK_MAILS[bank].domain)
  return receivedBy(OUR_MX, await sealedBy(sealer, mail), { from: `out.${sealer}` })
}

/** The bank's mail through a server that signs it as its own; the bank's own signature fails at ours. */
export async function forwardedMail(
  bank: MailBank,
  transfer: Transfer = TRANSFER,
  forwarder: string = FORWARDER,
): Promise<string> {
  const mail = await signed(bankMail(bank, transfer), BANK_MAILS[bank].domain)
  return receivedBy(OUR_MX, await forwardedBy(forwarder, mail), { from: `out.${forwarder}` })
}
