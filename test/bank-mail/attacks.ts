import {
  alternativeMail,
  BANK_MAILS,
  bankMail,
  FORWARDER,
  forwardedBy,
  forwardedMail,
  genuineMail,
  OUR_MX,
  receivedBy,
  SEALER,
  sealedBy,
  sealedMail,
  signed,
  STRANGERS_KEY,
  takenBy,
  TRANSFER,
  type MailBank,
  type Transfer,
} from '../support/bank-mails.ts'

/** The payment that an attacker wants taken for paid, and the account that it is to be paid to. */
export interface Victim {
  readonly code: string
  readonly amount: number
  readonly account: string
}

/** Makes the mail that the relay is given. */
export type Attack = (victim: Victim) => Promise<string> | string

/** What no attacker writes: who else could make a mail look genuine is named where it is used. */
const FORGED = `Authentication-Results: ${OUR_MX}; dkim=pass header.d=timo.vn\r\n`
export const EVIL = 'evil.example'
/** What a trusted server writes of a genuine mail. */
export const PASSED = `mx.${SEALER}; dkim=pass header.d=timo.vn`

let movements = 600_000_000

export function transferTo(victim: Victim, changes: Partial<Transfer> = {}): Transfer {
  movements += 1
  return { ...TRANSFER, ...victim, content: victim.code, movement: movements, ...changes }
}

/** Timo names no account in its mails: nothing but trust and the secret address stands between a forgery and its money. */
export function forgery(victim: Victim, fields: Readonly<Record<string, string | null>> = {}): string {
  return bankMail('TIMO', transferTo(victim), fields)
}

async function genuineTimo(victim: Victim, fields: Readonly<Record<string, string | null>> = {}): Promise<string> {
  return signed(forgery(victim, fields), 'timo.vn')
}

/** The mail as a server hands it over that found these things, whatever they are worth. */
function found(results: string, mail: string): string {
  return `Authentication-Results: ${OUR_MX}; ${results}\r\n${takenBy(OUR_MX, mail)}`
}

export const FORGED_RESULTS: Record<string, string> = {
  plainly: FORGED,
  folded: `Authentication-Results:\r\n ${OUR_MX};\r\n\tdkim=pass\r\n header.d=timo.vn\r\n`,
  'in other letters': `AUTHENTICATION-RESULTS: ${OUR_MX.toUpperCase()}; DKIM=PASS HEADER.D=TIMO.VN\r\n`,
  'with a version': `Authentication-Results: ${OUR_MX} 1; dkim/1=pass header.d=timo.vn\r\n`,
  'with a property type that no server knows': `Authentication-Results: ${OUR_MX}; dkim=pass x-a.b=c header.d=timo.vn\r\n`,
  'beside an action, which the grammar does not know': `Authentication-Results: ${OUR_MX}; dmarc=pass action=none; dkim=pass header.d=timo.vn\r\n`,
  'behind forty other results': `Authentication-Results: ${OUR_MX}${'; x-a=pass'.repeat(40)}; dkim=pass header.d=timo.vn\r\n`,
  'with the name quoted': `Authentication-Results: "${OUR_MX}"; dkim=pass header.d=timo.vn\r\n`,
  'with a blank that does not break': `Authentication-Results: ${OUR_MX}\u00a0; dkim=pass header.d=timo.vn\r\n`,
  'behind a comment': `Authentication-Results: (x) ${OUR_MX} (y); dkim=pass header.d=timo.vn\r\n`,
  twice: FORGED + FORGED,
  'above a Received that looks like ours': `${FORGED}Received: from a by ${OUR_MX}; Fri, 13 Nov 2026 06:37:12 +0000\r\n`,
  'below a Received that looks like ours': `Received: from a by ${OUR_MX}; Fri, 13 Nov 2026 06:37:12 +0000\r\n${FORGED}`,
  'below a Received of another server': `Received: from a by mx.${EVIL}; Fri, 13 Nov 2026 06:37:12 +0000\r\n${FORGED}`,
  'of the chain, and the results too': `${FORGED.trim()}; arc=pass\r\nARC-Authentication-Results: i=1; mx.${SEALER}; dkim=pass header.d=timo.vn\r\n`,
}

/** What a server that removes results forged in its name (RFC 8601, 5) leaves, since it cannot read them, or is confused by them. */
const LEFT_BY_SERVERS = [
  'with a version',
  'with a property type that no server knows',
  'beside an action, which the grammar does not know',
  'behind forty other results',
  'with the name quoted',
  'with a blank that does not break',
  'twice',
  'below a Received of another server',
]

const FORGERIES: Record<string, Attack> = {}
for (const [how, results] of Object.entries(FORGED_RESULTS)) {
  FORGERIES[`results forged ${how}, on a server that writes its own above`] = (victim) =>
    receivedBy(OUR_MX, results + forgery(victim))
  FORGERIES[`results forged ${how}, on a server that writes its own below its Received`] = (victim) =>
    receivedBy(OUR_MX, results + forgery(victim), { belowReceived: true })
  if (LEFT_BY_SERVERS.includes(how)) {
    FORGERIES[`results forged ${how}, on a server that is silent about unsigned mails`] = (victim) =>
      takenBy(OUR_MX, results + forgery(victim))
  }
  FORGERIES[`results forged ${how}, over a signature of the attacker's own`] = async (victim) =>
    receivedBy(OUR_MX, results + (await signed(forgery(victim), EVIL)))
  FORGERIES[`results forged ${how}, over a signature of the bank's that does not hold`] = async (victim) =>
    receivedBy(OUR_MX, results + (await genuineTimo(victim)).replace('Subject: ', 'Subject: x '), {
      belowReceived: true,
    })
}

const HIDDEN_PASSES: Record<string, string> = {
  'a comment': 'dkim=fail (dkim=pass header.d=timo.vn) header.d=timo.vn',
  'a nested comment': 'dkim=fail (a (b); dkim=pass header.d=timo.vn; (c)) header.d=timo.vn',
  'a reason': 'dkim=fail reason="x; dkim=pass header.d=timo.vn" header.d=timo.vn',
  'a quoted local part':
    'dkim=fail header.d=timo.vn; spf=pass smtp.mailfrom="; dkim=pass header.d=timo.vn "@evil.example',
  'an address that is not quoted as it should be':
    'dkim=none; spf=pass smtp.mailfrom=x; dkim=pass header.d=timo.vn @evil.example',
  'a comment on an address with parentheses':
    'dkim=none; spf=pass (domain of a) ; dkim=pass header.d=timo.vn (b@evil.example designates) smtp.mailfrom=c@evil.example',
  'a signing domain with a parenthesis': 'dkim=pass header.d=timo.vn(.evil.example header.s=mail',
  'a signing domain with a comment': 'dkim=pass header.d=timo.vn(.evil.example) header.s=mail',
  'a signing domain with a NUL': 'dkim=pass header.d=timo.vn\0.evil.example',
  'a selector that adds a domain': 'dkim=pass header.s=x header.d=timo.vn header.d=evil.example',
  'an identity of another domain': 'dkim=pass header.i=@timo.vn header.d=evil.example',
  'a method that is not DKIM': 'spf=pass smtp.mailfrom=support@timo.vn; dmarc=pass header.from=timo.vn',
  'a key that is published for tests': 'dkim=pass (test mode) header.d=timo.vn',
}

const HIDDEN: Record<string, Attack> = {}
for (const [where, results] of Object.entries(HIDDEN_PASSES)) {
  HIDDEN[`a pass hidden in ${where}`] = (victim) => found(results, forgery(victim))
}
HIDDEN['a pass injected by a hostile selector, over a signature of its own'] = async (victim) =>
  found(
    'dkim=pass header.s=x; dkim=pass header.d=timo.vn; x=y header.d=evil.example',
    await signed(forgery(victim), EVIL),
  )

const FROMS: Record<string, Readonly<Record<string, string | null>>> = {
  'two From fields': { From: 'support@timo.vn', FROM: 'x@evil.example' },
  'a From with a blank before the colon': { From: null, 'From ': 'support@timo.vn' },
  'a From whose name is folded': { From: null, 'From\r\n ': 'support@timo.vn' },
  'two addresses in From': { From: 'x@evil.example, support@timo.vn' },
  'two addresses in From, the bank first': { From: 'support@timo.vn, x@evil.example' },
  'an encoded address': { From: '=?utf-8?Q?support=40timo.vn?=' },
  'an encoded name that ends the address': { From: '=?utf-8?Q?support=40timo.vn=3E_=3C?= <x@evil.example>' },
  'a route': { From: '<@evil.example:support@timo.vn>' },
  'a quoted pair': { From: '"support\\@timo.vn"@evil.example' },
  'a group': { From: 'Timo: support@timo.vn;' },
  'the bank as a name': { From: '"support@timo.vn" <x@evil.example>' },
  'the bank as a comment': { From: 'x@evil.example (support@timo.vn)' },
  'the bank as Sender': { From: 'x@evil.example', Sender: 'support@timo.vn' },
  'the bank as Resent-From': { From: 'x@evil.example', 'Resent-From': 'support@timo.vn' },
  'no From': { From: null },
  'a domain that ends like the bank': { From: 'support@eviltimo.vn' },
  'a domain that begins like the bank': { From: 'support@timo.vn.evil.example' },
  'a domain that looks like the bank': { From: 'support@tim\u043e.vn' },
  'a domain that looks like the bank, encoded': { From: 'support@xn--tim-cfd.vn' },
}

const IMPERSONATIONS: Record<string, Attack> = {}
for (const [what, fields] of Object.entries(FROMS)) {
  IMPERSONATIONS[`${what}, whatever passed`] = (victim) => found('dkim=pass header.d=timo.vn', forgery(victim, fields))
}
for (const domain of ['eviltimo.vn', 'timo.vn.evil.example', 'xn--tim-cfd.vn', EVIL]) {
  IMPERSONATIONS[`a mail signed and sent by ${domain}`] = async (victim) =>
    receivedBy(OUR_MX, await signed(forgery(victim, { From: `support@${domain}` }), domain))
  IMPERSONATIONS[`a mail signed by ${domain} in the bank's name`] = async (victim) =>
    receivedBy(OUR_MX, await signed(forgery(victim), domain))
}

/** Adds a field on top of what the bank signed: its signature covers the one below. */
async function withFieldAdded(victim: Victim, field: string): Promise<string> {
  return receivedBy(OUR_MX, `${field}\r\n${await genuineTimo(victim, {})}`)
}

const WEAK_SIGNATURES: Record<string, Attack> = {
  'a body that goes on where the signature ends (l=)': async (victim) => {
    const text = forgery({ ...victim, code: 'NOTHING' }, { 'Content-Transfer-Encoding': '8bit' })
    const head = text.slice(0, text.indexOf('\r\n\r\n') + 4)
    const mail = await signed(`${head}<p></p>\r\n`, 'timo.vn', { maxBodyLength: 4 })
    return receivedBy(OUR_MX, mail + BANK_MAILS.TIMO.body(transferTo(victim)))
  },
  'a subject that is not signed': async (victim) =>
    receivedBy(OUR_MX, await signed(forgery(victim), 'timo.vn', { headerList: 'From:To:Content-Type' })),
  'a second content type above the signed one': (victim) => withFieldAdded(victim, 'Content-Type: text/plain'),
  'a second subject above the signed one': (victim) => withFieldAdded(victim, 'Subject: x'),
  'a second From above the signed one': (victim) => withFieldAdded(victim, 'From: support@timo.vn'),
  'a second transfer encoding above the signed one': (victim) =>
    withFieldAdded(victim, 'Content-Transfer-Encoding: 7bit'),
  'hundreds of signatures': async (victim) =>
    found(
      'dkim=pass header.d=timo.vn',
      `DKIM-Signature: v=1; d=timo.vn; h=from:subject:content-type; b=x\r\n`.repeat(300) + (await genuineTimo(victim)),
    ),
  'a signature that cannot be read': async (victim) =>
    found('dkim=pass header.d=timo.vn', `DKIM-Signature: d=timo.vn; d=evil.example\r\n${await genuineTimo(victim)}`),
}

const CONTRADICTIONS: Record<string, Attack> = {
  'contradictory results about the bank in two fields': (victim) =>
    `Authentication-Results: ${OUR_MX}; dkim=fail header.d=timo.vn\r\n${found('dkim=pass header.d=timo.vn', forgery(victim))}`,
  'contradictory results about the bank in one field': (victim) =>
    found('dkim=pass header.d=timo.vn; dkim=fail header.d=timo.vn', forgery(victim)),
  'nothing found beside a pass': (victim) =>
    `Authentication-Results: ${OUR_MX}; dkim=none\r\n${found('dkim=pass header.d=timo.vn', forgery(victim))}`,
  'nothing checked beside a pass': (victim) =>
    `Authentication-Results: ${OUR_MX}; none\r\n${found('dkim=pass header.d=timo.vn', forgery(victim))}`,
  'a pass of another domain beside the bank’s, in two fields': (victim) =>
    `Authentication-Results: ${OUR_MX}; dkim=pass header.d=evil.example\r\n${found('dkim=pass header.d=timo.vn', forgery(victim))}`,
  'a field that cannot be parsed beside a pass': (victim) =>
    `Authentication-Results: ${OUR_MX}; dkim=\r\n${found('dkim=pass header.d=timo.vn', forgery(victim))}`,
  'results of a server that is not configured': async (victim) =>
    receivedBy('mx.other.example', await genuineTimo(victim)),
}

/** A chain that is not built as it must be, on a server that takes it for good. */
async function withChain(victim: Victim, change: (mail: string) => string): Promise<string> {
  const sealed = await sealedBy(SEALER, await sealedBy(SEALER, await genuineTimo(victim)))
  return found('dkim=fail header.d=timo.vn; arc=pass', change(sealed))
}

const SEAL_2 = /^ARC-Seal: i=2;(?:.*\r\n[ \t])*.*\r\n/m
const NEWEST_SIGNATURE = /^ARC-Message-Signature: i=2;(?:.*\r\n[ \t])*.*\r\n/m

const CHAINS: Record<string, Attack> = {
  'a chain that the attacker sealed': async (victim) =>
    receivedBy(OUR_MX, await sealedBy(EVIL, forgery(victim), { found: `mx.${EVIL}; dkim=pass header.d=timo.vn` })),
  'a chain that the attacker sealed, with results of a trusted sealer in it': async (victim) =>
    receivedBy(OUR_MX, await sealedBy(EVIL, forgery(victim), { found: PASSED })),
  'a chain that the attacker sealed in the name of a trusted sealer': async (victim) =>
    receivedBy(
      OUR_MX,
      await sealedBy(EVIL, forgery(victim), { domain: SEALER, found: PASSED, privateKey: STRANGERS_KEY.privateKey }),
    ),
  'a chain in the name of a trusted sealer, on a server that does not look at chains': async (victim) =>
    takenBy(
      OUR_MX,
      `Authentication-Results: ${OUR_MX} 1; arc/1=pass\r\n${await sealedBy(EVIL, forgery(victim), {
        domain: SEALER,
        found: PASSED,
        privateKey: STRANGERS_KEY.privateKey,
      })}`,
    ),
  'the same over a signature of the bank’s that does not hold': async (victim) =>
    found(
      'dkim=fail header.d=timo.vn',
      `Authentication-Results: ${OUR_MX} 1; arc/1=pass\r\n${await sealedBy(EVIL, await genuineTimo(victim), {
        domain: SEALER,
        found: PASSED,
        privateKey: STRANGERS_KEY.privateKey,
      })}`,
    ),
  'a chain that the attacker goes on with': async (victim) =>
    receivedBy(OUR_MX, await sealedBy(EVIL, await sealedBy(SEALER, await genuineTimo(victim)))),
  'a chain with the attacker in its middle': async (victim) =>
    receivedBy(OUR_MX, await sealedBy(SEALER, await sealedBy(EVIL, await sealedBy(SEALER, await genuineTimo(victim))))),
  'a chain whose trusted sealer passes on what another server found': async (victim) =>
    receivedBy(OUR_MX, await sealedBy(SEALER, forgery(victim), { found: `mx.${EVIL}; dkim=pass header.d=timo.vn` })),
  'a chain whose trusted sealer found nothing': async (victim) =>
    receivedBy(OUR_MX, await sealedBy(SEALER, forgery(victim))),
  'a chain that is named in a comment alone': async (victim) =>
    found('dkim=fail (arc=pass) header.d=timo.vn', await sealedBy(SEALER, await genuineTimo(victim))),
  'a chain with a gap': (victim) => withChain(victim, (mail) => mail.replace(/\bi=1;/g, 'i=3;')),
  'a chain with an instance twice': (victim) => withChain(victim, (mail) => mail.replace(/\bi=2;/g, 'i=1;')),
  'a chain with a seal missing': (victim) => withChain(victim, (mail) => mail.replace(SEAL_2, '')),
  'a chain with a seal too many': (victim) => withChain(victim, (mail) => SEAL_2.exec(mail)![0] + mail),
  'a chain that says of itself that it fails': (victim) =>
    withChain(victim, (mail) => mail.replace('cv=pass', 'cv=fail')),
  'a chain whose first seal passes one before it': (victim) =>
    withChain(victim, (mail) => mail.replace('cv=none', 'cv=pass')),
  'a chain that covers part of the body': (victim) =>
    withChain(victim, (mail) => mail.replace(/^(ARC-Message-Signature: i=2;)/m, '$1 l=1;')),
  'a chain that does not cover From': (victim) =>
    withChain(victim, (mail) => mail.replace(NEWEST_SIGNATURE, (field) => field.replace('From', 'Date'))),
}

const FORWARDS: Record<string, Attack> = {
  'a forwarder that nobody trusts': (victim) => forwardedMail('TIMO', transferTo(victim), EVIL),
  'a forwarder where anybody has an address': (victim) => forwardedMail('TIMO', transferTo(victim), 'gmail.com'),
  'a trusted forwarder that found nothing': async (victim) =>
    receivedBy(OUR_MX, await forwardedBy(FORWARDER, forgery(victim))),
  'a trusted forwarder that found nothing, with results forged below': async (victim) =>
    receivedBy(
      OUR_MX,
      await forwardedBy(
        FORWARDER,
        `Authentication-Results: mx.${FORWARDER}; dkim=pass header.d=timo.vn\r\n${forgery(victim)}`,
      ),
    ),
  'a trusted forwarder with another server between it and us': async (victim) => {
    const forwarded = await forwardedBy(FORWARDER, await genuineTimo(victim))
    const relayed = `Received: from a by mx.${EVIL}; Fri, 13 Nov 2026 06:37:12 +0000\r\n${forwarded}`
    return receivedBy(OUR_MX, relayed)
  },
  'a trusted forwarder’s results without its signature': async (victim) =>
    receivedBy(
      OUR_MX,
      `Authentication-Results: mx.${FORWARDER}; dkim=pass header.d=timo.vn\r\nReceived: from a by mx.${FORWARDER}; x\r\n${await signed(
        forgery(victim),
        EVIL,
      )}`,
    ),
  'a trusted forwarder’s signature that was never there, on a server that is silent about unsigned mails': (victim) =>
    takenBy(
      OUR_MX,
      `Authentication-Results: ${OUR_MX} 1; dkim/1=pass header.d=${FORWARDER}\r\n` +
        `Authentication-Results: mx.${FORWARDER}; dkim=pass header.d=timo.vn\r\n` +
        takenBy(`mx.${FORWARDER}`, forgery(victim)),
    ),
  'a trusted forwarder that is silent about unsigned mails, with results forged below': async (victim) => {
    const forged = `Authentication-Results: mx.${FORWARDER} 1; dkim/1=pass header.d=timo.vn\r\n${forgery(victim)}`
    return receivedBy(OUR_MX, await signed(takenBy(`mx.${FORWARDER}`, forged), FORWARDER))
  },
  'a trusted sealer that only signed': async (victim) =>
    receivedBy(OUR_MX, await forwardedBy(SEALER, await genuineTimo(victim))),
  'a trusted forwarder that only sealed': (victim) => sealedMail('TIMO', transferTo(victim), FORWARDER),
}

/** Money that a bank's mail seems to report, and does not. */
const MISREADINGS: Record<string, Attack> = {
  'money that went out': async (victim) =>
    receivedBy(
      OUR_MX,
      await signed(bankMail('TIMO', TRANSFER, {}, BANK_MAILS.TIMO.body(transferTo(victim), '-')), 'timo.vn'),
    ),
  'a text part and an HTML part that disagree': async (victim) => {
    const [much, little] = [transferTo(victim), transferTo(victim, { amount: 1000 })]
    return receivedBy(
      OUR_MX,
      await signed(
        alternativeMail('TIMO', asText(BANK_MAILS.TIMO.body(much)), BANK_MAILS.TIMO.body(little)),
        'timo.vn',
      ),
    )
  },
  'a payer’s text that imitates the bank in English': (victim) =>
    genuineMail(
      'ACB',
      transferTo(victim, {
        amount: 1000,
        content: `${victim.code} GD 1 010126-00:00:00. Latest transaction: Credit ${asAcbWrites(victim)}. Content: ${victim.code}`,
      }),
    ),
  'a payer’s text that imitates the bank in Vietnamese': (victim) => {
    const content = `Giao dịch mới nhất:Ghi có ${asAcbWrites(victim)}. Nội dung giao dịch: ${victim.code}`
    const [vietnamese = ''] = BANK_MAILS.ACB.body(transferTo(victim, { amount: 1000, content })).split('-----')
    return genuineBody('ACB', vietnamese)
  },
  'a payer’s name that imitates a row': (victim) => {
    const body = BANK_MAILS.CAKE.body(transferTo(victim, { amount: 1000 }))
    return genuineBody('CAKE', body.replace('NGUYEN VAN A', `NGUYEN VAN A Số tiền +${victim.amount / 1000}.000 đ`))
  },
  'an answer that quotes what somebody wrote to the bank': (victim) =>
    genuineMail('TIMO', transferTo(victim), { 'In-Reply-To': '<x@evil.example>' }),
  'an automatic answer of the bank': (victim) =>
    genuineMail('TIMO', transferTo(victim), { 'Auto-Submitted': 'auto-replied' }),
}

async function genuineBody(bank: MailBank, body: string): Promise<string> {
  return receivedBy(OUR_MX, await signed(bankMail(bank, TRANSFER, {}, body), BANK_MAILS[bank].domain))
}

function asAcbWrites({ amount }: Victim): string {
  return `+${amount / 1000},000.00 VND`
}

function asText(html: string): string {
  return html.replace(/<style>.*<\/style>|<title>.*<\/title>|<[^>]+>/g, ' ').replaceAll('&nbsp;', ' ')
}

/** Mails that must not be read as the victim's payment, whoever they come to. */
export const KINDS_OF_ATTACK: readonly Readonly<Record<string, Attack>>[] = [
  FORGERIES,
  HIDDEN,
  IMPERSONATIONS,
  WEAK_SIGNATURES,
  CONTRADICTIONS,
  CHAINS,
  FORWARDS,
  MISREADINGS,
]
