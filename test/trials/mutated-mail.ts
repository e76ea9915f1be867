import { BANK_MAILS, bankMail, OUR_MX, takenBy, TRANSFER, type MailBank } from '../support/bank-mails.ts'

export type Random = () => number

/** A mail with a few mutations, or one excessive one. Most pass as genuine, so that their bodies are read. */
export function mutatedMail(random: Random): Buffer {
  if (random() < 0.1) return Buffer.from(pick(random, EXCESSES)(random), 'latin1')
  const [header, body] = soundMail(random)
  const mutations = 1 + Math.floor(random() * 4)
  let head: Buffer = Buffer.from(header)
  let tail: Buffer = Buffer.from(body)
  for (let number = 0; number < mutations; number += 1) {
    // In most, the results on top stay valid: otherwise nothing below them would be read.
    if (random() < 0.75) tail = mutate(random, tail)
    else head = Buffer.concat([head.subarray(0, FINDINGS.length), mutate(random, head.subarray(FINDINGS.length))])
  }
  return Buffer.concat([head, tail])
}

const FINDINGS = `Authentication-Results: ${OUR_MX}; dkim=pass header.i=@acb.com.vn\r\n`
/** The signature covers the body, so that it is read in any character set. */
const SIGNATURE =
  'DKIM-Signature: v=1; a=rsa-sha256; d=acb.com.vn; s=mail; h=from:subject:content-type:content-transfer-encoding; bh=x; b=x\r\n'

function findingsFor(bank: MailBank): string {
  return FINDINGS.replace('acb.com.vn', BANK_MAILS[bank].domain)
}

function soundMail(random: Random): [header: string, body: string] {
  const bank = pick(random, Object.keys(BANK_MAILS) as MailBank[])
  const signature = random() < 0.5 ? SIGNATURE.replace('acb.com.vn', BANK_MAILS[bank].domain) : ''
  const mail = findingsFor(bank) + takenBy(OUR_MX, signature + bankMail(bank))
  const end = mail.indexOf('\r\n\r\n') + 4
  return random() < 0.5 ? [mail.slice(0, end), mail.slice(end)] : multipart(random, mail.slice(0, end), bank)
}

function multipart(random: Random, header: string, bank: MailBank): [header: string, body: string] {
  const head = header.replace(
    /Content-Type: .*\r\nContent-Transfer-Encoding: .*\r\n/,
    `Content-Type: multipart/mixed; boundary=x\r\n`,
  )
  const body = BANK_MAILS[bank].body(TRANSFER)
  const encoding = pick(random, ['base64', 'quoted-printable', '8bit'])
  const content = encoding === 'base64' ? Buffer.from(body).toString('base64') : body
  const type = `Content-Type: ${BANK_MAILS[bank].type}; charset=utf-8\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n`
  return [head, `--x\r\n${type}${content}\r\n--x--\r\n`]
}

function pick<T>(random: Random, choices: readonly T[]): T {
  return choices[Math.floor(random() * choices.length)] as T
}

type Mutation = (random: Random, bytes: Buffer, at: number) => Buffer

const replace = (bytes: Buffer, at: number, length: number, by: Buffer | string): Buffer =>
  Buffer.concat([bytes.subarray(0, at), Buffer.from(by), bytes.subarray(at + length)])

const MUTATIONS: readonly Mutation[] = [
  (random, bytes, at) => replace(bytes, at, 1, Buffer.from([Math.floor(random() * 256)])),
  (random, bytes, at) => replace(bytes, at, Math.floor(random() * 200), ''),
  (random, bytes, at) => replace(bytes, at, 0, bytes.subarray(at, at + Math.floor(random() * 2000))),
  (random, bytes, at) => replace(bytes, at, 0, pick(random, FRAGMENTS)),
  (random, bytes, at) => replace(bytes, at, 0, pick(random, FRAGMENTS).repeat(Math.floor(random() * 300))),
  (_random, bytes, at) => bytes.subarray(0, at),
  (_random, bytes) => Buffer.from(bytes.toString('latin1').replaceAll('\r\n', '\n'), 'latin1'),
]

const FRAGMENTS = [
  '\0',
  '\r',
  '\n',
  '\r\n\r\n',
  '--x\r\n',
  '--x--\r\n',
  '<div>',
  '<!--',
  '&#x110000;',
  '&amp',
  '<td style="',
  '=?utf-8?B?',
  '=?x-unknown?Q?=FF?=',
  '(',
  '"',
  ';',
  'Content-Type: text/html; charset=utf-7\r\n',
  'Content-Type: multipart/alternative; boundary="x"\r\n',
  'Content-Transfer-Encoding: uuencode\r\n',
  'Content-Type: message/rfc822\r\n\r\n',
  'Số tiền +149.000 đ ',
  'Giao dịch mới nhất:Ghi có +1,000.00 VND. ',
  'PG23456789 ',
  '\u202e\u200b\ufeff',
  '\xff\xfe',
  '='.repeat(70),
]

function mutate(random: Random, bytes: Buffer): Buffer {
  return pick(random, MUTATIONS)(random, bytes, Math.floor(random() * bytes.length))
}

/** About the largest mail that the service accepts, in base64 within 256 KB. */
const FULL = 190_000

const proven = (fields: string, body: string): string =>
  `${findingsFor('ACB')}From: mailalert@acb.com.vn\r\n${fields}\r\n${body}`
const ofType = (type: string, body: string): string => proven(`Content-Type: ${type}\r\n`, body)
const nested = (depth: number, kind: string): string =>
  Array.from(
    { length: depth },
    (_, level) => `Content-Type: multipart/${kind}; boundary=b${level}\r\n\r\n--b${level}\r\n`,
  ).join('')

/** One excess each. */
const EXCESSES: readonly ((random: Random) => string)[] = [
  (random) => ofType('text/plain', 'x'.repeat(FULL + Math.floor(random() * 20_000))),
  () => ofType('multipart/mixed; boundary=x', '--x\r\n'.repeat(FULL / 5)),
  () => ofType('multipart/mixed; boundary=x', '--x\r\n\r\ny\r\n'.repeat(FULL / 10)),
  () => ofType('multipart/alternative; boundary=x', '--x\r\nContent-Type: text/html\r\n\r\n<p>\r\n'.repeat(FULL / 40)),
  () => ofType('multipart/mixed; boundary=y', `--y\r\n${nested(500, 'mixed')}`),
  () => ofType('multipart/mixed; boundary=y', `--y\r\n${nested(3000, 'alternative')}`),
  () => ofType('message/rfc822', 'Content-Type: message/rfc822\r\n\r\n'.repeat(FULL / 36)),
  () => `${findingsFor('ACB')}From: ${'a@b,'.repeat(FULL / 4)}\r\n\r\nx`,
  () => `${findingsFor('ACB')}From: ${'<'.repeat(FULL)}\r\n\r\nx`,
  () => `${findingsFor('ACB')}From: ${'"\\'.repeat(FULL / 2)}\r\n\r\nx`,
  () => `${findingsFor('ACB')}From: ${'('.repeat(FULL)}mailalert@acb.com.vn\r\n\r\nx`,
  () => proven(`To: ${'(a'.repeat(FULL / 2)}\r\n`, 'x'),
  () => proven(`To: ${'a@b, '.repeat(FULL / 5)}\r\n`, 'x'),
  () => proven(`Subject: ${'=?utf-8?B?eA==?= '.repeat(FULL / 17)}\r\n`, 'x'),
  () => proven(`Content-Type: text/plain; ${'a*0*=x;'.repeat(FULL / 7)}\r\n`, 'x'),
  () => proven(`Received: from ${'(a '.repeat(FULL / 3)}\r\n`, 'x'),
  () => `Authentication-Results: ${OUR_MX}; dkim=pass ${'('.repeat(FULL)}\r\nFrom: mailalert@acb.com.vn\r\n\r\nx`,
  () =>
    `Authentication-Results: ${OUR_MX}${'; dkim=pass header.d=acb.com.vn'.repeat(FULL / 31)}\r\nFrom: mailalert@acb.com.vn\r\n\r\nx`,
  () => proven('DKIM-Signature: d=acb.com.vn; h=from:subject:content-type\r\n'.repeat(FULL / 60), 'x'),
  () => proven(`DKIM-Signature: ${'a=b;'.repeat(FULL / 4)}\r\n`, 'x'),
  () => 'X: y\r\n'.repeat(FULL / 6),
  () => ' \r\n'.repeat(FULL / 3),
  () => ofType('text/html', '<div>'.repeat(FULL / 5)),
  () => ofType('text/html', '<'.repeat(FULL)),
  () => ofType('text/html', '&'.repeat(FULL)),
  () => ofType('text/html', `<a ${'b="'.repeat(FULL / 3)}`),
  () => ofType('text/html', '<!--'.repeat(FULL / 4)),
  () => ofType('text/plain', ' '.repeat(FULL)),
  () => ofType('text/plain', 'tài khoản 12345678 của Quý khách '.repeat(FULL / 40)),
  () => ofType('text/plain', 'PG'.repeat(FULL / 2)),
  () => ofType('text/plain; charset=x-unknown', '\xff'.repeat(FULL)),
  () => proven('Content-Transfer-Encoding: base64\r\n', '!'.repeat(FULL)),
  () => proven('Content-Transfer-Encoding: base64\r\n', '='.repeat(FULL)),
  () => proven('Content-Transfer-Encoding: quoted-printable\r\n', '='.repeat(FULL)),
  (random) => Array.from({ length: FULL / 2 }, () => String.fromCharCode(Math.floor(random() * 256))).join(''),
  () => '\0'.repeat(FULL),
]
