import { readArcChain } from './arc.ts'
import { parseAuthenticationResults } from './authentication-results.ts'
import type { AuthenticationResults, MethodResult } from './authentication-results.ts'
import { isWithin } from './domains.ts'
import { valuesOf } from './header-fields.ts'
import type { Header, HeaderField } from './header-fields.ts'
import { coveredFields, parseTags } from './tag-list.ts'

/** Whom we believe, in lower case (contract 1, `BILLING_RELAY_…`). */
export interface TrustSettings {
  /** Names by which our own receiving mail servers sign what they found. */
  readonly authservIds: readonly string[]
  readonly trustedForwarders: readonly string[]
  readonly trustedArcSealers: readonly string[]
}

/** How a mail was shown to be the bank's. */
export type TrustPath = 'direct' | 'forwarder' | 'arc'

/** Anybody can have an address there, so that such a domain's signature says nothing of who forwarded a mail. */
const FREE_MAIL = [
  'gmail.com',
  'googlemail.com',
  'outlook.com',
  'hotmail.com',
  'live.com',
  'yahoo.com',
  'icloud.com',
  'proton.me',
  'protonmail.com',
  'zoho.com',
  'gmx.net',
  'gmx.com',
  'mail.ru',
  'yandex.com',
  'yandex.ru',
  'qq.com',
  '163.com',
]

/** More signatures than any mail has: checking them costs, and servers give up after a few. */
const MOST_SIGNATURES = 10

/** More results than any server writes; OpenDKIM reads no field that has more. */
const MOST_PLAIN_RESULTS = 16

/** Fields that must not stand twice: a signature covers one of them, and a reader may take the other. */
const SINGLE_FIELDS = ['from', 'subject', 'content-type', 'content-transfer-encoding', 'mime-version', 'message-id']

/** Fields that the bank's signature must cover where they stand: who wrote, what about, and how the body is to be read. */
const COVERED_FIELDS = ['from', 'subject', 'content-type']

/**
 * How the header shows that the mail is one of `domains`' (a bank's), or null where it does not (specification 5, contract 5).
 * Only what our own receiving server wrote counts, and what those whom it vouches for wrote. Anything malformed, anything said
 * twice and differently, is taken for what it most likely is.
 */
export function findTrust(header: Header, domains: readonly string[], settings: TrustSettings): TrustPath | null {
  const { fields } = header
  if (!header.isWellFormed || SINGLE_FIELDS.some((name) => valuesOf(fields, name).length > 1)) return null
  const ours = readBlock(fields, 0, (name) => settings.authservIds.includes(name))
  const signatures = readSignatures(fields)
  if (!ours || !signatures || !areSound(fields, signatures, domains)) return null
  const mail: Evidence = { fields, ours, signatures, domains }
  if (isDirect(mail)) return 'direct'
  if (isForwarded(mail, settings.trustedForwarders)) return 'forwarder'
  return isSealed(mail, settings.trustedArcSealers) ? 'arc' : null
}

/** Whether our own server passed a signature of these domains. What the signature covers is not asked: it proves no content. */
export function isSignedBy(header: Header, domains: readonly string[], settings: TrustSettings): boolean {
  const { fields } = header
  if (!header.isWellFormed) return false
  const ours = readBlock(fields, 0, (name) => settings.authservIds.includes(name))
  const signatures = readSignatures(fields)
  return ours !== null && signatures !== null && isDirect({ fields, ours, signatures, domains })
}

interface Evidence {
  readonly fields: readonly HeaderField[]
  /** What our own server wrote. */
  readonly ours: Block
  readonly signatures: readonly Signature[]
  /** The bank's. */
  readonly domains: readonly string[]
}

interface Block {
  readonly results: readonly MethodResult[]
  /** Whether the results stand above every `Received`, where only the server itself can have put them. */
  readonly isProven: boolean
  /** Whether they are one field of a form that every server reads, so that it would have removed it had the sender written it. */
  readonly isPlain: boolean
  /** Index of the first field below all that this server wrote. */
  readonly end: number
}

/**
 * What a server wrote on top of what it received, from field `start` on: the fields above the first `Received` that is not
 * its own. Null where it says nothing there, or where it seems to say something malformed or contradictory.
 *
 * A server prepends its findings: often above its own `Received`, sometimes below. Below, they stand where the sender's own
 * fields begin, and a sender who forges them gets by a server that removes only what it can parse (OpenDKIM leaves an
 * `Authentication-Results` with a version, an unknown property type or more than 16 results). Hence `isProven` and `isPlain`.
 */
function readBlock(fields: readonly HeaderField[], start: number, isOwn: (name: string) => boolean): Block | null {
  const proven: AuthenticationResults[] = []
  const possible: AuthenticationResults[] = []
  let end = start
  let hasReceived = false
  for (const [index, { name, value }] of fields.entries()) {
    if (index < start) continue
    if (name === 'received') {
      const by = receivedBy(value)
      if (by === null || !isOwn(by)) break
      hasReceived = true
      end = index + 1
    }
    if (name !== 'authentication-results') continue
    const report = parseAuthenticationResults(value)
    if (!report) return null
    if (!isOwn(report.authservId)) continue
    ;(hasReceived ? possible : proven).push(report)
    end = index + 1
  }
  const all = [...proven, ...possible]
  if (all.length === 0 || contradict(all)) return null
  const evidence = proven.length > 0 ? proven : possible
  return {
    results: evidence.flatMap(({ results }) => results),
    isProven: proven.length > 0,
    isPlain: evidence.length === 1 && evidence.every(isPlain),
    end,
  }
}

function isPlain(report: AuthenticationResults): boolean {
  return report.isPlain && report.results.length <= MOST_PLAIN_RESULTS
}

/** The `by` of a `Received`, in lower case; null where it is not plain to see. */
function receivedBy(value: string): string | null {
  let bare = value
  // Comments nest; each round takes the innermost away.
  for (let round = 0; round < 5 && bare.includes('('); round += 1) bare = bare.replace(/\((?:[^()\\]|\\.)*\)/g, ' ')
  const match = /^[ \t]*(?:from[ \t]+[^ \t;()]+[ \t]+)?by[ \t]+([^ \t;()]+)(?=[ \t;]|$)/i.exec(bare)
  return match?.[1]?.toLowerCase() ?? null
}

/** Whether fields of one server say different things of one subject, or one says that it found nothing where another passes. */
function contradict(reports: readonly AuthenticationResults[]): boolean {
  const results = reports.flatMap((report) => report.results)
  const found = new Map<string, string>()
  for (const result of results) {
    const subject = `${result.method} ${subjectOf(result)}`
    if ((found.get(subject) ?? result.result) !== result.result) return true
    found.set(subject, result.result)
  }
  const hasPassed = results.some(({ result }) => result === 'pass')
  if (hasPassed && reports.some((report) => report.results.length === 0)) return true
  return ['dkim', 'arc'].some((method) => saysNoneBesidePass(results, method) || reportsDiffer(reports, method))
}

/** What the result is about: the signing domain of `dkim`, an address or name with others. */
function subjectOf(result: MethodResult): string {
  if (result.method === 'dkim') return signedDomain(result) ?? ''
  const name = ['header.from', 'smtp.mailfrom', 'smtp.helo'].find((property) => result.properties.has(property))
  return name === undefined ? '' : `${name}=${result.properties.get(name)?.toLowerCase() ?? ''}`
}

function saysNoneBesidePass(results: readonly MethodResult[], method: string): boolean {
  const said = results.filter((result) => result.method === method).map(({ result }) => result)
  return said.includes('none') && said.includes('pass')
}

/** Every field that speaks of the method must pass the same domains: a forged one cannot know what the true one will say. */
function reportsDiffer(reports: readonly AuthenticationResults[], method: string): boolean {
  const passed = reports
    .filter(({ results }) => results.some((result) => result.method === method))
    .map(({ results }) => passedDomains(results, method).sort().join(' '))
  return new Set(passed).size > 1
}

function passedDomains(results: readonly MethodResult[], method: string): string[] {
  const passed = results.filter((result) => result.method === method && isPass(result))
  return [...new Set(passed.map((result) => signedDomain(result) ?? ''))]
}

/** A pass under a key that its domain publishes for tests is none (RFC 6376, 3.6.1, `t=y`); some servers remark on it. */
function isPass(result: MethodResult): boolean {
  return result.result === 'pass' && !/\btest(ing|[ -]?mode|[ -]?key)?\b/i.test(result.remarks)
}

/** The domain that a DKIM result is about: `header.d`, or the domain of `header.i`; null where it is not plain. */
function signedDomain(result: MethodResult): string | null {
  const domain = result.properties.get('header.d')?.toLowerCase()
  const identity = result.properties.get('header.i')?.toLowerCase()
  const identityDomain = identity?.slice(identity.lastIndexOf('@') + 1)
  if (domain !== undefined && identityDomain !== undefined && !isWithin(identityDomain, domain)) return null
  const signer = domain ?? identityDomain ?? ''
  return /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)+$/.test(signer) ? signer : null
}

function hasPass(results: readonly MethodResult[], domains: readonly string[]): boolean {
  const passed = results.filter((result) => result.method === 'dkim' && isPass(result)).map(signedDomain)
  return passed.some((domain) => domain !== null && domains.some((parent) => isWithin(domain, parent)))
}

interface Signature {
  readonly domain: string
  readonly tags: ReadonlyMap<string, string>
}

/** The DKIM signatures that the mail carries; null where one cannot be read or there are too many. */
function readSignatures(fields: readonly HeaderField[]): Signature[] | null {
  const values = valuesOf(fields, 'dkim-signature')
  if (values.length > MOST_SIGNATURES) return null
  const signatures: Signature[] = []
  for (const value of values) {
    const tags = parseTags(value)
    const domain = tags?.get('d')?.toLowerCase()
    if (!tags || !domain) return null
    signatures.push({ domain, tags })
  }
  return signatures
}

/** Whether every signature of these domains covers the whole body and the fields that matter. */
function areSound(
  fields: readonly HeaderField[],
  signatures: readonly Signature[],
  domains: readonly string[],
): boolean {
  const present = COVERED_FIELDS.filter((name) => valuesOf(fields, name).length > 0)
  return signedBy(signatures, domains).every(({ tags }) => {
    const covered = coveredFields(tags)
    return !tags.has('l') && present.every((name) => covered.has(name))
  })
}

function signedBy(signatures: readonly Signature[], domains: readonly string[]): Signature[] {
  return signatures.filter(({ domain }) => domains.some((parent) => isWithin(domain, parent)))
}

/** Whether a block passes a signature of these domains that the mail can have had. */
function passes(mail: Evidence, block: Block, domains: readonly string[]): boolean {
  return hasPass(block.results, domains) && canHavePassed(mail, block, domains)
}

/**
 * A mail with signatures must have one of theirs: without one, nothing can have passed. On a mail without any, a finding must stand
 * where a sender cannot have put it, or be such that the receiving server would have removed it: there it may not speak for itself.
 */
function canHavePassed(mail: Evidence, block: Block, domains: readonly string[]): boolean {
  if (signedBy(mail.signatures, domains).length > 0) return true
  return mail.signatures.length === 0 && (block.isProven || block.isPlain)
}

function isDirect(mail: Evidence): boolean {
  return passes(mail, mail.ours, mail.domains)
}

/** Our server passes a trusted forwarder's signature, and the forwarder's own findings, right below, pass the bank's. */
function isForwarded(mail: Evidence, forwarders: readonly string[]): boolean {
  return forwarders.some((forwarder) => {
    if (FREE_MAIL.some((domain) => isWithin(forwarder, domain))) return false
    if (!passes(mail, mail.ours, [forwarder]) || !areSound(mail.fields, mail.signatures, [forwarder])) return false
    const theirs = readBlock(mail.fields, mail.ours.end, (name) => isWithin(name, forwarder))
    if (!theirs || !hasPass(theirs.results, mail.domains)) return false
    return theirs.isProven || canHavePassed(mail, theirs, mail.domains)
  })
}

/** Our server passes the ARC chain, and going back over trusted sealers alone there is one that passed the bank's signature. */
function isSealed(mail: Evidence, sealers: readonly string[]): boolean {
  const { ours, domains } = mail
  if (!ours.results.some((result) => result.method === 'arc' && isPass(result))) return false
  if (!ours.isProven && !canHavePassed(mail, ours, domains)) return false
  for (const { sealer, saw } of readArcChain(mail.fields)?.reverse() ?? []) {
    if (!sealers.includes(sealer)) return false
    if (isWithin(saw.authservId, sealer) && !contradict([saw]) && hasPass(saw.results, domains)) return true
  }
  return false
}
