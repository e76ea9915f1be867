import {
  alternativeMail,
  BANK_MAILS,
  bankMail,
  FORWARDER,
  forwardedBy,
  forwardedMail,
  OUR_MX,
  receivedBy,
  SEALER,
  sealedBy,
  sealedMail,
  signed,
  takenBy,
  type Transfer,
} from '../support/bank-mails.ts'

/** Makes a mail of TIMO's for a transfer, as some server or program that is in use hands it over. */
export type GenuineForm = (transfer: Transfer) => Promise<string>

/** Google Workspace signs neither the type of a body nor its encoding. */
const AS_GOOGLE_SIGNS = { headerList: 'From:To:Subject:Date:Message-ID:MIME-Version' }

const signedTimo = (transfer: Transfer): Promise<string> => signed(bankMail('TIMO', transfer), 'timo.vn')
const found = (results: string, by = OUR_MX): string => `Authentication-Results: ${by};${results}\r\n`

/** The beginning of the signature, by which servers distinguish signatures (RFC 6008). */
function beginningOf(mail: string): string {
  const field = /^DKIM-Signature: .*(?:\r\n[ \t].*)*/m.exec(mail)![0].replace(/\s/g, '')
  return /;b=([^;]{8})/.exec(field)![1]!
}

/** The mail as a server hands it over that writes what it found like this, `BEGINNING` standing for the signature's. */
async function foundBy(server: string, transfer: Transfer, place: 'above' | 'below'): Promise<string> {
  const mail = await signedTimo(transfer)
  const results = server.replaceAll('BEGINNING', beginningOf(mail))
  return place === 'above' ? results + takenBy(OUR_MX, mail) : takenBy(OUR_MX, results + mail)
}

const OPENDKIM = found(
  '\r\n\tdkim=pass (2048-bit key; unprotected) header.d=timo.vn header.i=@timo.vn header.a=rsa-sha256 header.s=mail header.b="BEGINNING"',
)
const OPENDMARC = found(' dmarc=pass (p=none dis=none) header.from=timo.vn')
const POLICYD =
  'Authentication-Results: mx.pay.example; spf=pass (mailfrom) smtp.mailfrom=timo.vn (client-ip=203.0.113.7; helo=mta.bank.example)\r\n'
const GMAIL = found(
  '\r\n       dkim=pass header.i=@timo.vn header.s=mail header.b="BEGINNING";\r\n       spf=pass (google.com: domain of support@timo.vn designates 18.140.167.8 as permitted sender) smtp.mailfrom=support@timo.vn;\r\n       dmarc=pass (p=QUARANTINE sp=QUARANTINE dis=NONE) header.from=timo.vn',
)
const SRS = found(
  ' dkim=pass header.i=@timo.vn header.s=mail header.b="BEGINNING"; spf=pass (google.com: domain of a.b+caf_=c=googlemail.com@gmail.com designates 209.85.220.41 as permitted sender) smtp.mailfrom="a.b+caf_=c=googlemail.com@gmail.com"',
)
const RSPAMD = found(
  '\r\n\tdkim=pass header.d=timo.vn header.s=mail header.b="BEGINNING";\r\n\tarc=none;\r\n\tspf=pass (mx.pay.example: domain of support@timo.vn designates 203.0.113.7 as permitted sender) smtp.mailfrom=support@timo.vn;\r\n\tdmarc=pass (policy=none) header.from=timo.vn',
)
const EXIM = found(
  '\r\n\tiprev=pass (mta.bank.example) smtp.remote-ip=203.0.113.7;\r\n\tdkim=pass header.d=timo.vn header.s=mail header.a=rsa-sha256',
)
const AMAVIS =
  'Authentication-Results: mx.pay.example (amavisd-new);\r\n\tdkim=pass (2048-bit key) header.d=timo.vn\r\n'
const SECOND_FAILED = found(
  ' dkim=pass header.d=timo.vn header.s=mail; dkim=fail (no key) header.d=amazonses.com header.s=x',
)

const SERVERS: Record<string, GenuineForm> = {
  'OpenDKIM under Postfix': (transfer) => foundBy(OPENDKIM, transfer, 'below'),
  'OpenDKIM and OpenDMARC under Postfix': (transfer) => foundBy(OPENDMARC + OPENDKIM, transfer, 'below'),
  'OpenDKIM, OpenDMARC and an SPF policy under Postfix': (transfer) =>
    foundBy(OPENDMARC + OPENDKIM + POLICYD, transfer, 'below'),
  'OpenDKIM, above the Received': (transfer) => foundBy(OPENDKIM, transfer, 'above'),
  'Google’s form': (transfer) => foundBy(GMAIL, transfer, 'above'),
  'Google’s form, with an address that is quoted': (transfer) => foundBy(SRS, transfer, 'above'),
  'rspamd under Postfix': (transfer) => foundBy(RSPAMD, transfer, 'below'),
  Exim: (transfer) => foundBy(EXIM, transfer, 'above'),
  amavis: (transfer) => foundBy(AMAVIS, transfer, 'below'),
  'a server that finds a second signature, of another domain, wrong': async (transfer) =>
    SECOND_FAILED + takenBy(OUR_MX, await signed(await signedTimo(transfer), 'amazonses.com', { selector: 'x' })),
}

const sealed = async (transfer: Transfer): Promise<string> => sealedBy(SEALER, await signedTimo(transfer))
const ARC_FOUND =
  ' dkim=fail (body hash did not verify) header.i=@timo.vn header.s=mail; arc=pass ("sealer.example:s=arc:i=1"); spf=pass smtp.mailfrom=a@sealer.example'

const WAYS: Record<string, GenuineForm> = {
  'a second server of ours': async (transfer) => takenBy(OUR_MX, await receivedBy(OUR_MX, await signedTimo(transfer))),
  'a trusted forwarder, found by a server that writes below its Received': async (transfer) =>
    receivedBy(OUR_MX, await forwardedBy(FORWARDER, await signedTimo(transfer)), { belowReceived: true }),
  'a trusted sealer and a second server of ours': async (transfer) =>
    takenBy(OUR_MX, await sealedMail('TIMO', transfer)),
  'a trusted forwarder': (transfer) => forwardedMail('TIMO', transfer),
  'a trusted sealer': (transfer) => sealedMail('TIMO', transfer),
  'a trusted sealer, found by a server that writes below its Received': async (transfer) =>
    takenBy(OUR_MX, found(ARC_FOUND) + (await sealed(transfer))),
  'a trusted sealer, found by one of several programs above the Received': async (transfer) =>
    found(' arc=pass') + found(' dkim=fail header.d=timo.vn') + takenBy(OUR_MX, await sealed(transfer)),
  'a trusted sealer that names the signature which it passed': async (transfer) => {
    const mail = await signedTimo(transfer)
    const results = `mx.${SEALER}; dkim=pass header.i=@timo.vn header.s=mail header.b="${beginningOf(mail)}"`
    return receivedBy(OUR_MX, await sealedBy(SEALER, mail, { found: results }))
  },
  'a trusted sealer whose results are in the form of Exchange Online': async (transfer) => {
    const results = `mx.${SEALER} 1; spf=pass (sender ip is 203.0.113.7) smtp.rcpttodomain=shop.example smtp.mailfrom=timo.vn; dmarc=pass (p=quarantine sp=quarantine pct=100) action=none header.from=timo.vn; dkim=pass (signature was verified) header.d=timo.vn; arc=none (0)`
    return receivedBy(OUR_MX, await sealedBy(SEALER, await signedTimo(transfer), { found: results }))
  },
  'a trusted forwarder that took the bank’s signature away': async (transfer) => {
    const results = found(' dkim=pass header.d=timo.vn', `mx.${FORWARDER}`)
    const taken = results + takenBy(`mx.${FORWARDER}`, bankMail('TIMO', transfer))
    return receivedBy(OUR_MX, await signed(taken, FORWARDER))
  },
}

/** A mail under a signature like Google's. `body` stands below the header as it is. */
async function googleSigned(fields: Readonly<Record<string, string | null>>, body: string): Promise<string> {
  const mail = bankMail('TIMO', undefined, fields, '')
  const header = mail.slice(0, mail.indexOf('\r\n\r\n') + 4)
  return receivedBy(OUR_MX, await signed(`${header}${body}`, 'timo.vn', AS_GOOGLE_SIGNS))
}

const bodyFor = (transfer: Transfer): string => BANK_MAILS.TIMO.body(transfer)
const wordsFor = (transfer: Transfer): string =>
  bodyFor(transfer)
    .replace(/<style>.*<\/style>|<title>.*<\/title>|<[^>]+>/g, ' ')
    .replaceAll('&nbsp;', ' ')
/** As mail programs write it: what is not ASCII, and `=`, and ends of long lines. */
const quotedPrintable = (text: string): string =>
  text
    .split('\r\n')
    .map((line) =>
      Array.from(Buffer.from(line), (byte) =>
        byte > 126 || byte === 61 ? `=${byte.toString(16).toUpperCase().padStart(2, '0')}` : String.fromCharCode(byte),
      )
        .join('')
        .replace(/(?:=[0-9A-F]{2}|[^=]){40}/g, '$&=\r\n'),
    )
    .join('\r\n')
const HTML_PART = (transfer: Transfer): string =>
  `Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n${Buffer.from(bodyFor(transfer)).toString('base64')}\r\n`
const multipart = (kind: string): Readonly<Record<string, string | null>> => ({
  'Content-Type': `multipart/${kind}; boundary="b 1"`,
  'Content-Transfer-Encoding': null,
})

const BODIES: Record<string, GenuineForm> = {
  'HTML in base64': (transfer) => googleSigned({}, Buffer.from(bodyFor(transfer)).toString('base64')),
  'HTML in base64, with lines': (transfer) =>
    googleSigned({}, `${Buffer.from(bodyFor(transfer)).toString('base64').replace(/.{76}/g, '$&\r\n')}\r\n`),
  'HTML in eight bits': (transfer) => googleSigned({ 'Content-Transfer-Encoding': '8bit' }, bodyFor(transfer)),
  'HTML in quoted-printable': (transfer) =>
    googleSigned({ 'Content-Transfer-Encoding': 'quoted-printable' }, quotedPrintable(bodyFor(transfer))),
  'HTML without a character set': (transfer) =>
    googleSigned({ 'Content-Type': 'text/html', 'Content-Transfer-Encoding': '8bit' }, bodyFor(transfer)),
  'text in UTF-8, in other letters': (transfer) =>
    googleSigned(
      { 'Content-Type': 'Text/Plain; charset="UTF-8"; format=flowed', 'Content-Transfer-Encoding': '8BIT' },
      wordsFor(transfer),
    ),
  'text and HTML': async (transfer) =>
    receivedBy(
      OUR_MX,
      await signed(alternativeMail('TIMO', wordsFor(transfer), bodyFor(transfer)), 'timo.vn', AS_GOOGLE_SIGNS),
    ),
  'HTML with an image, a file and words for programs that know no parts': (transfer) =>
    googleSigned(
      multipart('mixed'),
      `This is a multi-part message in MIME format.\r\n--b 1\r\nContent-Type: multipart/related; boundary=b2\r\n\r\n--b2\r\n${HTML_PART(transfer)}--b2\r\nContent-Type: image/png\r\nContent-ID: <a>\r\nContent-Transfer-Encoding: base64\r\n\r\niVBORw0KGgo=\r\n--b2--\r\n--b 1\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=a.pdf\r\nContent-Transfer-Encoding: base64\r\n\r\nJVBERi0=\r\n--b 1\r\nContent-Type: text/plain; charset=iso-8859-1\r\nContent-Disposition: attachment; filename=a.txt\r\n\r\nx\r\n--b 1--\r\n`,
    ),
}

/** By what is particular about them. Each must be processed. */
export const GENUINE_FORMS: Readonly<Record<string, GenuineForm>> = {
  ...Object.fromEntries(Object.entries(SERVERS).map(([name, form]) => [`as written by ${name}`, form])),
  ...Object.fromEntries(Object.entries(WAYS).map(([name, form]) => [`by way of ${name}`, form])),
  ...Object.fromEntries(
    Object.entries(BODIES).map(([name, form]) => [`under a signature like Google’s, as ${name}`, form]),
  ),
}
