import {
  BANK_MAILS,
  bankMail,
  FORWARDER,
  OUR_MX,
  receivedBy,
  SEALER,
  sealedBy,
  signed,
  STRANGERS_KEY,
  takenBy,
  TRANSFER,
} from '../support/bank-mails.ts'
import { EVIL, forgery, PASSED, transferTo, type Attack, type Victim } from './attacks.ts'

/** Each of these must be answered `rejected`, `untrusted_sender`: nothing shows that the bank wrote what would be read. */

const noticeFor = (victim: Victim): string => BANK_MAILS.TIMO.body(transferTo(victim))

/** An invented chain in the name of a trusted sealer, over a signature in the bank's name that does not hold. */
async function withInventedChain(victim: Victim): Promise<string> {
  const options = { domain: SEALER, found: PASSED, privateKey: STRANGERS_KEY.privateKey }
  return sealedBy(EVIL, await signed(forgery(victim), 'timo.vn'), options)
}

const found = (results: string, by = OUR_MX): string => `Authentication-Results: ${by}; ${results}\r\n`

/** What the sender writes in our server's name. */
const CLAIMS: Record<string, string> = {
  plainly: found('arc=pass'),
  'in other letters': `authentication-results: ${OUR_MX.toUpperCase()}; ARC=PASS\r\n`,
  'with a version': `Authentication-Results: ${OUR_MX} 1; arc=pass\r\n`,
  'with a version of the method': found('arc/1=pass'),
  'about the address of MAIL FROM': found('arc=pass smtp.mailfrom=support@timo.vn'),
  'about the name of HELO': found('arc=pass smtp.helo=mx.timo.vn'),
  'about From': found('arc=pass header.from=timo.vn'),
  'about the bank’s domain': found('arc=pass header.d=timo.vn header.i=@timo.vn'),
  'about another address': found('arc=pass smtp.remote-ip=198.51.100.9'),
  'with a property type that no server knows': found(`arc=pass arc.chain=${SEALER}`),
  'beside an action': found('dmarc=pass action=none; arc=pass'),
  'with a reason': found('arc=pass reason="two seals"'),
  'behind forty other results': found(`${'x-a=pass; '.repeat(40)}arc=pass`),
  'with a version, and DKIM too': `Authentication-Results: ${OUR_MX} 1; dkim=fail header.d=timo.vn; arc=pass\r\n`,
  twice: found('arc=pass') + found('arc=pass'),
}

/** What our server found, and where it wrote that. */
const TRUTHS: Record<string, (rest: string) => string> = {
  'a server that finds both wrong, below its Received': (rest) =>
    takenBy(OUR_MX, found('dkim=fail header.d=timo.vn; arc=fail') + rest),
  'a server that finds both wrong and says where the mail came from': (rest) =>
    takenBy(OUR_MX, found('dkim=fail header.d=timo.vn header.s=mail; arc=fail smtp.remote-ip=203.0.113.7') + rest),
  'a server that finds both wrong in two fields': (rest) =>
    takenBy(OUR_MX, found('dkim=fail header.d=timo.vn') + found('arc=fail') + rest),
  'a server that finds no chain': (rest) => takenBy(OUR_MX, found('dkim=fail header.d=timo.vn; arc=none') + rest),
  'a server that looks at DKIM alone': (rest) => takenBy(OUR_MX, found('dkim=fail header.d=timo.vn') + rest),
  'a server that looks at DMARC alone': (rest) => takenBy(OUR_MX, found('dmarc=fail header.from=timo.vn') + rest),
  'a server that finds both wrong, above its Received': (rest) =>
    found('dkim=fail header.d=timo.vn; arc=fail') + takenBy(OUR_MX, rest),
  'a server that looks at DKIM alone, above its Received': (rest) =>
    found('dkim=fail header.d=timo.vn') + takenBy(OUR_MX, rest),
  'a server that says nothing': (rest) => takenBy(OUR_MX, rest),
}

const ARC_CLAIMS: Record<string, Attack> = {}
for (const [how, claim] of Object.entries(CLAIMS)) {
  for (const [where, write] of Object.entries(TRUTHS)) {
    ARC_CLAIMS[`an invented chain that the sender passes ${how}, on ${where}`] = async (victim) =>
      write(claim + (await withInventedChain(victim)))
  }
}

/** What a server writes that puts the address of MAIL FROM into a comment as it came. */
const BROKEN_OUT: Record<string, string> = {
  'a quoted address that goes on with arc=pass':
    'dkim=fail header.d=timo.vn; spf=pass (mx: domain of "x); arc=pass (y"@evil.example designates 203.0.113.7 as permitted sender) smtp.mailfrom="x); arc=pass (y"@evil.example',
  'a quoted address that is named in the comment alone':
    'dkim=fail header.d=timo.vn; spf=pass (mx: domain of "x); arc=pass (y"@evil.example designates 203.0.113.7 as permitted sender)',
  'a quoted address whose domain alone is named again':
    'dkim=fail header.d=timo.vn; spf=pass (mx: domain of "x); arc=pass (y"@evil.example designates 203.0.113.7 as permitted sender) smtp.mailfrom=evil.example',
  'a quoted address with escapes':
    'dkim=fail header.d=timo.vn; spf=pass (mx: domain of "x\\"); arc=pass (\\"y"@evil.example is permitted) smtp.mailfrom=evil.example',
  'a quoted address that poses as HELO’s and leaves the rest to another method':
    'dkim=fail header.d=timo.vn; spf=pass (mx: domain of "x) smtp.helo=x; arc=pass; x-a=pass (y"@evil.example is permitted) smtp.mailfrom=evil.example',
  'an address in the properties that only quotes hold together':
    'dkim=fail header.d=timo.vn; spf=pass (mx: domain of x); arc=pass; x-a=pass (y@evil.example is permitted) smtp.mailfrom="x); arc=pass; x-a=pass (y"@evil.example',
  'an address without quotes, which names DKIM’s result after itself':
    'dkim=fail header.d=timo.vn; spf=pass (domain of a) ; arc=pass (b@evil.example designates) smtp.mailfrom=c@evil.example',
  'an address without quotes, whose rest has no words':
    'dkim=fail header.d=timo.vn; spf=pass (domain of a) ; arc=pass smtp.mailfrom=c@evil.example',
  'an address without quotes, which makes two senders of one':
    'dkim=fail header.d=timo.vn; spf=pass (domain of a) smtp.mailfrom=a@evil.example; arc=pass; spf=pass (of b@evil.example) smtp.mailfrom=b@evil.example',
  'the name of HELO': 'dkim=fail header.d=timo.vn; spf=none (mx: postmaster@x) ; arc=pass smtp.helo=x',
}

const BREAKOUTS: Record<string, Attack> = {}
for (const [what, results] of Object.entries(BROKEN_OUT)) {
  BREAKOUTS[`text that breaks out of a comment: ${what}`] = async (victim) =>
    found(results) + takenBy(OUR_MX, await withInventedChain(victim))
  const signer = results
    .replace('dkim=fail header.d=timo.vn; ', '')
    .replaceAll('arc=pass', 'dkim=pass header.d=timo.vn')
  BREAKOUTS[`text that breaks out of a comment, for DKIM: ${what}`] = (victim) =>
    found(signer) + takenBy(OUR_MX, forgery(victim))
  BREAKOUTS[`text that breaks out of a comment, at a trusted sealer: ${what}`] = async (victim) =>
    receivedBy(OUR_MX, await sealedBy(SEALER, forgery(victim), { found: `mx.${SEALER}; ${signer}` }))
  BREAKOUTS[`text that breaks out of a comment, at a trusted forwarder: ${what}`] = async (victim) => {
    const taken = found(signer, `mx.${FORWARDER}`) + takenBy(`mx.${FORWARDER}`, forgery(victim))
    return receivedBy(OUR_MX, await signed(taken, FORWARDER))
  }
}
BREAKOUTS['an identity in a signature that goes on with arc=pass where a server decodes it'] = async (victim) =>
  found('dkim=fail header.d=timo.vn; dkim=pass header.i=x; arc=pass; x-a=pass header.i=@evil.example') +
  takenBy(
    OUR_MX,
    `DKIM-Signature: v=1; a=rsa-sha256; d=${EVIL}; s=mail; i=x=3B=20arc=3Dpass=3B=20x-a=3Dpass=20header.i=3D@${EVIL}; h=from; bh=x; b=x\r\n${await withInventedChain(victim)}`,
  )
BREAKOUTS['a selector in a signature that goes on with arc=pass'] = async (victim) =>
  found('dkim=fail header.d=timo.vn; dkim=pass header.s=x (y) ; arc=pass; x-a=pass header.d=evil.example') +
  takenBy(
    OUR_MX,
    `DKIM-Signature: v=1; a=rsa-sha256; d=${EVIL}; s=x (y) , arc=pass; h=from; bh=x; b=x\r\n${await withInventedChain(victim)}`,
  )

/** A signature that nobody made; servers call it failed. */
const junk = (tags: string): string =>
  `DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; ${tags}; h=from:subject:content-type:content-transfer-encoding; bh=AAAA; b=BBBBBBBBCC\r\n`
const JUNK = junk('d=timo.vn; s=mail')

const MISFITS: Record<string, Attack> = {
  'a result with a selector, on a mail without a signature': (victim) =>
    found('dkim=pass header.d=timo.vn header.s=mail') + takenBy(OUR_MX, forgery(victim)),
  'a result with a part of a signature, on a mail without one': (victim) =>
    found('dkim=pass header.d=timo.vn header.b=BBBBBBBB') + takenBy(OUR_MX, forgery(victim)),
  'a result about another selector': (victim) =>
    found('dkim=pass header.d=timo.vn header.s=other') + takenBy(OUR_MX, JUNK + forgery(victim)),
  'a result about another signature of the domain': (victim) =>
    found('dkim=pass header.d=timo.vn header.s=mail header.b=XXXXXXXX') + takenBy(OUR_MX, JUNK + forgery(victim)),
  'a result about another domain of the bank': (victim) =>
    found('dkim=pass header.d=mail.timo.vn') + takenBy(OUR_MX, JUNK + forgery(victim)),
  'a result about an identity that is not the signature’s': (victim) =>
    found('dkim=pass header.i=@timo.vn') + takenBy(OUR_MX, junk('d=mail.timo.vn; s=mail') + forgery(victim)),
  'a signature that our server calls failed by its identity': (victim) =>
    found('dkim=fail header.i=@mail.timo.vn; dkim=pass header.d=timo.vn') +
    takenBy(OUR_MX, junk('d=timo.vn; s=mail; i=@mail.timo.vn') + forgery(victim)),
  'a signature that our server calls failed by its selector': (victim) =>
    found('dkim=permerror header.s=mail; dkim=pass header.d=timo.vn') + takenBy(OUR_MX, JUNK + forgery(victim)),
  'a signature that lacks what every signature has, on a server that says nothing of it': (victim) =>
    takenBy(
      OUR_MX,
      `${found('dkim=pass header.d=timo.vn')}DKIM-Signature: d=timo.vn; h=from:subject:content-type; b=x\r\n${forgery(victim)}`,
    ),
  'a signature of the bank’s, and results with a version, on a server that looks at DMARC alone': (victim) =>
    takenBy(
      OUR_MX,
      `${found('dmarc=fail header.from=timo.vn')}Authentication-Results: ${OUR_MX} 1; dkim/1=pass header.d=timo.vn\r\n${JUNK}${forgery(victim)}`,
    ),
  'a trusted sealer’s result about a signature that the mail does not carry': async (victim) =>
    receivedBy(
      OUR_MX,
      await sealedBy(SEALER, JUNK + forgery(victim), { found: `${PASSED} header.s=other header.b=XXXXXXXX` }),
    ),
  'a trusted forwarder’s result about a signature that the mail does not carry': async (victim) => {
    const taken =
      found('dkim=pass header.d=timo.vn header.s=other', `mx.${FORWARDER}`) +
      takenBy(`mx.${FORWARDER}`, forgery(victim))
    return receivedBy(OUR_MX, await signed(taken, FORWARDER))
  },
  'a trusted forwarder’s results below its Received, over a signature that ours calls failed': async (victim) => {
    const taken = takenBy(
      `mx.${FORWARDER}`,
      found('dkim=pass header.d=timo.vn', `mx.${FORWARDER}`) + JUNK + forgery(victim),
    )
    return receivedBy(OUR_MX, await signed(taken, FORWARDER))
  },
}

/** Signs neither what the body is nor how it is encoded, as Google Workspace does. */
const UNSIGNED_TYPE = { headerList: 'From:To:Subject:Date:Message-ID' }

/** The bank's own mail of a movement that is not the victim's, with other fields than it had: they are not signed. */
async function disguised(
  fields: Readonly<Record<string, string | null>>,
  body: string,
  headerList = UNSIGNED_TYPE.headerList,
): Promise<string> {
  const mail = bankMail('TIMO', TRANSFER, fields)
  return receivedBy(
    OUR_MX,
    await signed(`${mail.slice(0, mail.indexOf('\r\n\r\n') + 4)}${body}`, 'timo.vn', { headerList }),
  )
}

/** What the bank wrote, of little money for something else. */
const TRUE_NOTICE = BANK_MAILS.TIMO.body({ ...TRANSFER, amount: 1000, movement: 799_999_999 })
const asPart = (text: string): string => `--x\r\nContent-Type: text/html; charset=utf-8\r\n\r\n${text}\r\n--x--\r\n`
const asBase64 = (text: string): string => Buffer.from(text).toString('base64')
const asWords = (html: string): string => html.replace(/<style>.*<\/style>|<title>.*<\/title>|<[^>]+>/g, ' ')
/** Words whose letters fill whole groups of base64, which what follows them needs. */
const TRUE_WORDS = 'So tien vua tang mot nghin VND '

const DISGUISES: Record<string, Attack> = {
  'a boundary that hides what the bank wrote': (victim) =>
    disguised(
      { 'Content-Type': 'multipart/mixed; boundary=x', 'Content-Transfer-Encoding': '8bit' },
      `${TRUE_NOTICE}\r\n${asPart(noticeFor(victim))}`,
    ),
  'a boundary that hides it, under an encoding in which it is nothing': (victim) =>
    disguised(
      { 'Content-Type': 'multipart/mixed; boundary=x', 'Content-Transfer-Encoding': 'base64' },
      `...\r\n${asPart(noticeFor(victim))}`,
    ),
  'a digest, whose parts are mails': (victim) =>
    disguised(
      { 'Content-Type': 'multipart/digest; boundary=x', 'Content-Transfer-Encoding': null },
      asPart(noticeFor(victim)),
    ),
  'another type than text': (victim) =>
    disguised(
      { 'Content-Type': 'application/octet-stream', 'Content-Transfer-Encoding': 'base64' },
      asBase64(noticeFor(victim)),
    ),
  'text that is read as HTML': (victim) =>
    disguised({ 'Content-Transfer-Encoding': '8bit' }, `${asWords(noticeFor(victim))} <!--`),
  'HTML that is read as text': (victim) =>
    disguised(
      { 'Content-Type': 'text/plain; charset=utf-8', 'Content-Transfer-Encoding': '8bit' },
      `<p hidden>\r\n${asWords(noticeFor(victim))}`,
    ),
  'text that flows and loses blanks': (victim) =>
    disguised(
      { 'Content-Type': 'text/plain; charset=utf-8; format=flowed; delsp=yes', 'Content-Transfer-Encoding': '8bit' },
      asWords(noticeFor(victim)),
    ),
  'bytes that are no UTF-8 under its name': (victim) =>
    disguised({}, Buffer.concat([Buffer.from(noticeFor(victim)), Buffer.from([0xff])]).toString('base64')),
  'bytes that are no ASCII under its name': (victim) =>
    disguised(
      { 'Content-Type': 'text/html; charset=us-ascii', 'Content-Transfer-Encoding': 'base64' },
      asBase64(noticeFor(victim)),
    ),
  'base64 that the bank did not write, though it signed the type': (victim) =>
    disguised(
      { 'Content-Transfer-Encoding': 'base64' },
      TRUE_WORDS + asBase64(noticeFor(victim)),
      'From:To:Subject:Content-Type',
    ),
  'quoted-printable that the bank did not write, though it signed the type': (victim) =>
    disguised({ 'Content-Transfer-Encoding': 'quoted-printable' }, noticeFor(victim), 'From:To:Subject:Content-Type'),
  'an encoding that nobody knows, though the type is signed': (victim) =>
    disguised({ 'Content-Transfer-Encoding': 'x-uuencode' }, noticeFor(victim), 'From:To:Subject:Content-Type'),
}
for (const charset of [
  'windows-1258',
  'iso-8859-1',
  'utf-7',
  'utf-16',
  'iso-2022-jp',
  'x-unknown',
  'unicode-1-1-utf-8',
  '""',
]) {
  DISGUISES[`the character set ${charset}, which is not signed`] = (victim) =>
    disguised({ 'Content-Type': `text/html; charset=${charset}` }, asBase64(noticeFor(victim)))
  DISGUISES[`a part in the character set ${charset}, in a multipart that is not signed`] = (victim) =>
    disguised(
      { 'Content-Type': 'multipart/mixed; boundary=x', 'Content-Transfer-Encoding': null },
      asPart(noticeFor(victim)).replace('utf-8', charset),
    )
}

export const KINDS_OF_FORGERY: readonly Readonly<Record<string, Attack>>[] = [ARC_CLAIMS, BREAKOUTS, MISFITS, DISGUISES]
