import { readArcChain } from './arc.ts'
import { parseAuthenticationResults, type AuthenticationResults, type MethodResult } from './authentication-results.ts'
import { isWithin } from './domains.ts'
import { valuesOf, withoutComments, type Header, type HeaderField } from './header-fields.ts'
import { coveredFields, parseTags, VERIFIABLE } from './tag-list.ts'

/** The servers and forwarders that we trust, in lower case (`BILLING_RELAY_…`). */
export interface TrustSettings {
  /** The authserv-ids of our own receiving mail servers. */
  readonly authservIds: readonly string[]
  readonly trustedForwarders: readonly string[]
  readonly trustedArcSealers: readonly string[]
}

/** How a mail was verified as the bank's. */
export type TrustPath = 'direct' | 'forwarder' | 'arc'

export interface Trust {
  readonly path: TrustPath
  /** The lower-case names of the fields that all verified signatures cover; empty if there is no signature. */
  readonly covered: ReadonlySet<string>
}

/** Domains where anybody can have an address, so their signatures do not identify a forwarder. */
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

/** More signatures than any genuine mail has. */
const MAX_SIGNATURES = 10

/** More results than any server writes; OpenDKIM reads no field that has more. */
const MAX_PLAIN_RESULTS = 16

/** Fields that must not occur twice: the signature covers one of them, and a reader may use the other. */
const SINGLE_FIELDS = ['from', 'subject', 'content-type', 'content-transfer-encoding', 'mime-version', 'message-id']

/** Fields that the bank's signature must cover if present. `read-trust.ts` checks those that determine how the body is read. */
const COVERED_FIELDS = ['from', 'subject']

/** Longer than any server's `Received`. */
const MAX_RECEIVED_LENGTH = 2000

/**
 * How the header proves that the mail is from one of `domains` (a bank's); null if it does not. Only the results of our
 * own receiving server count, and those of servers that it vouches for. Malformed or contradictory fields count as forgeries (R194).
 */
export function findTrust(header: Header, domains: readonly string[], settings: TrustSettings): Trust | null {
  if (SINGLE_FIELDS.some((name) => valuesOf(header.fields, name).length > 1)) return null
  const mail = readEvidence(header, domains, settings)
  if (!mail || !coverWhatMatters(mail, domains)) return null
  if (isDirect(mail)) return { path: 'direct', covered: coveredBy(mail, domains) }
  const forwarder = settings.trustedForwarders.find((name) => isForwardedBy(mail, name))
  if (forwarder !== undefined) return { path: 'forwarder', covered: coveredBy(mail, [forwarder]) }
  const seal = findSeal(mail, settings.trustedArcSealers)
  return seal && { path: 'arc', covered: seal }
}

/** Whether our own server verified a signature of these domains. The signature may cover anything, so this proves no content. */
export function isSignedBy(header: Header, domains: readonly string[], settings: TrustSettings): boolean {
  const mail = readEvidence(header, domains, settings)
  return mail !== null && isDirect(mail)
}

interface Evidence {
  readonly fields: readonly HeaderField[]
  /** The results of our own server. */
  readonly ours: Block
  readonly signatures: readonly Signature[]
  /** Signatures that failed according to our own server. */
  readonly failed: ReadonlySet<Signature>
  /** The bank's. */
  readonly domains: readonly string[]
}

/** Null if the header contains nothing reliable. */
function readEvidence(header: Header, domains: readonly string[], settings: TrustSettings): Evidence | null {
  const { fields } = header
  if (!header.isWellFormed) return null
  const ours = readBlock(fields, 0, (name) => settings.authservIds.includes(name))
  const signatures = readSignatures(fields)
  if (!ours || !signatures) return null
  return { fields, ours, signatures, failed: failedSignatures(ours, signatures), domains }
}

interface Block {
  /** Every result in the name of this server, without contradictions. */
  readonly all: readonly MethodResult[]
  /** Results that may prove something: the ones above every `Received`; if there are none, the ones of plain fields. */
  readonly results: readonly MethodResult[]
  /** Whether the results are above every `Received`, where only the server itself can have put them. */
  readonly isProven: boolean
  /** Whether they are one plain field: the server would have removed it had the sender written it. */
  readonly isPlain: boolean
  /** Index of the first field below everything that this server wrote. */
  readonly end: number
}

/**
 * The results that a server prepended, from field `start` on: those above the first `Received` that is not its own. Null if there are none,
 * or if they are malformed or contradictory.
 *
 * A server usually prepends its results above its own `Received`, but sometimes below. Below, they adjoin the sender's own fields, and a
 * server removes forged ones only if it can parse them. OpenDKIM leaves an `Authentication-Results` with a version, an unknown property
 * type or more than 16 results. Hence `isProven` and `isPlain`.
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
    if (isBrokenUp(report)) return null
    ;(hasReceived ? possible : proven).push(report)
    end = index + 1
  }
  const all = [...proven, ...possible]
  if (all.length === 0 || contradict(all)) return null
  const isProven = proven.length > 0
  return {
    all: all.flatMap(({ results }) => results),
    results: (isProven ? proven : possible.filter(isPlain)).flatMap(({ results }) => results),
    isProven,
    isPlain: !isProven && possible.length === 1 && possible.every(isPlain),
    end,
  }
}

function isPlain(report: AuthenticationResults): boolean {
  return report.isPlain && report.results.length <= MAX_PLAIN_RESULTS
}

/**
 * Whether the sender's own text seems to have ended a comment and continued as a result. Servers copy the address of MAIL FROM into
 * comments: `(domain of "x); arc=pass (y"@evil.example designates …)`. The signs are a quotation that a comment cuts, an address in
 * the properties that needs quotes, or the rest of that address among results about signatures.
 */
function isBrokenUp({ results, isIntact }: AuthenticationResults): boolean {
  const senders = results
    .map(({ properties }) => properties.get('smtp.mailfrom'))
    .filter((sender) => sender !== undefined)
  return !isIntact || new Set(senders).size > 1 || results.some(isJoinedWithSender)
}

function isJoinedWithSender({ method, properties, remarks }: MethodResult): boolean {
  if (method !== 'dkim' && method !== 'arc') return false
  return remarks.includes('@') || properties.has('smtp.mailfrom') || properties.has('smtp.helo')
}

/** The `by` of a `Received`, in lower case; null if it is ambiguous. */
function receivedBy(value: string): string | null {
  const bare = value.length > MAX_RECEIVED_LENGTH ? null : withoutComments(value)
  const match = /^[ \t]*(?:from[ \t]+[^ \t;()]+[ \t]+)?by[ \t]+([^ \t;()]+)(?=[ \t;]|$)/i.exec(bare ?? '')
  return match?.[1]?.toLowerCase() ?? null
}

/** Whether fields of one server differ about one subject, or one reports nothing beside a pass of another. */
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
  return (
    isSaidBesidePass(results, 'dkim', (said) => said === 'none') ||
    isSaidBesidePass(results, 'arc', isNoPass) ||
    signersDiffer(reports)
  )
}

function isNoPass(said: string): boolean {
  return said !== 'pass'
}

/** The subject of a result: the signing domain of `dkim`, an address or name of other methods. */
function subjectOf(result: MethodResult): string {
  if (result.method === 'dkim') return signedDomain(result) ?? ''
  const name = ['header.from', 'smtp.mailfrom', 'smtp.helo'].find((property) => result.properties.has(property))
  return name === undefined ? '' : `${name}=${result.properties.get(name)?.toLowerCase() ?? ''}`
}

function isSaidBesidePass(
  results: readonly MethodResult[],
  method: string,
  contradicts: (said: string) => boolean,
): boolean {
  const said = results.filter((result) => result.method === method).map(({ result }) => result)
  return said.includes('pass') && said.some(contradicts)
}

/** Every field with DKIM results must pass the same domains: a forger cannot know what the genuine one passes. */
function signersDiffer(reports: readonly AuthenticationResults[]): boolean {
  const passed = reports
    .filter(({ results }) => results.some(isAboutSignature))
    .map(({ results }) => [...new Set(results.filter(isPassedSignature).map((result) => signedDomain(result) ?? '?'))])
    .map((signers) => signers.sort().join(' '))
  return new Set(passed).size > 1
}

function isAboutSignature({ method }: MethodResult): boolean {
  return method === 'dkim'
}

function isPassedSignature(result: MethodResult): boolean {
  return isAboutSignature(result) && isPass(result)
}

/** A pass under a key that its domain publishes for tests does not count (RFC 6376, 3.6.1, `t=y`); some servers comment on it. */
function isPass(result: MethodResult): boolean {
  return result.result === 'pass' && !/\btest(ing|[ -]?mode|[ -]?key)?\b/i.test(result.remarks)
}

/** The domain of a DKIM result: `header.d`, or the domain of `header.i`; null if it is ambiguous. */
function signedDomain(result: MethodResult): string | null {
  const domain = result.properties.get('header.d')?.toLowerCase()
  const identity = result.properties.get('header.i')?.toLowerCase()
  const identityDomain = identity?.slice(identity.lastIndexOf('@') + 1)
  if (domain !== undefined && identityDomain !== undefined && !isWithin(identityDomain, domain)) return null
  const signer = domain ?? identityDomain ?? ''
  return /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)+$/.test(signer) ? signer : null
}

/** Whether the result passes a signature of these domains or a subdomain. */
function passesOneOf(result: MethodResult, domains: readonly string[]): boolean {
  const signer = isPassedSignature(result) ? signedDomain(result) : null
  return signer !== null && domains.some((parent) => isWithin(signer, parent))
}

interface Signature {
  readonly domain: string
  readonly tags: ReadonlyMap<string, string>
}

/** The DKIM signatures that the mail carries; null if one cannot be read or there are too many. */
function readSignatures(fields: readonly HeaderField[]): Signature[] | null {
  const values = valuesOf(fields, 'dkim-signature')
  if (values.length > MAX_SIGNATURES) return null
  const signatures: Signature[] = []
  for (const value of values) {
    const tags = parseTags(value)
    const domain = tags?.get('d')?.toLowerCase()
    if (!tags || !domain || !hasPlainNames(tags)) return null
    signatures.push({ domain, tags })
  }
  return signatures
}

/** Servers copy these tags into their results, so that they must not contain anything that could begin or end a result. */
function hasPlainNames(tags: ReadonlyMap<string, string>): boolean {
  const [domain = '', selector = '', identity = ''] = ['d', 's', 'i'].map((name) => tags.get(name))
  const isPlainName = (name: string): boolean => /^[\w.-]*$/.test(name)
  return isPlainName(domain) && isPlainName(selector) && /^[\w.!#$%&'*+/?^`{|}~-]*(?:@[\w.-]+)?$/.test(identity)
}

/** Whether the result can be about the signature: no property contradicts it. */
function fits({ properties }: MethodResult, { domain, tags }: Signature): boolean {
  const [named, identity, selector, value] = SIGNATURE_PROPERTIES.map((name) => properties.get(name))
  const identityDomain = identity?.slice(identity.lastIndexOf('@') + 1).toLowerCase()
  return (
    (named === undefined || named.toLowerCase() === domain) &&
    (identityDomain === undefined || isWithin(identityDomain, domain)) &&
    (selector === undefined || selector.toLowerCase() === tags.get('s')?.toLowerCase()) &&
    (value === undefined || (tags.get('b') ?? '').replace(/[ \t]/g, '').startsWith(value))
  )
}

const SIGNATURE_PROPERTIES = ['header.d', 'header.i', 'header.s', 'header.b'] as const

/** Whether the result identifies one signature, not only the domain. */
function namesSignature({ properties }: MethodResult): boolean {
  return properties.has('header.s') || properties.has('header.b')
}

/** The signatures that failed. A failure without properties is about a signature that no pass fits. */
function failedSignatures({ all }: Block, signatures: readonly Signature[]): ReadonlySet<Signature> {
  const passes = all.filter(isPassedSignature)
  const failures = all.filter((result) => isAboutSignature(result) && !isPass(result))
  const named = failures.filter(({ properties }) => SIGNATURE_PROPERTIES.some((name) => properties.has(name)))
  const isFailed = (signature: Signature): boolean =>
    named.some((result) => fits(result, signature)) ||
    (failures.length > named.length && !passes.some((result) => fits(result, signature)))
  return new Set(signatures.filter(isFailed))
}

/** Whether every signature of these domains covers the whole body and the fields that matter. */
function coverWhatMatters({ fields, signatures }: Evidence, domains: readonly string[]): boolean {
  const present = COVERED_FIELDS.filter((name) => valuesOf(fields, name).length > 0)
  return signedBy(signatures, domains).every(({ tags }) => {
    const covered = coveredFields(tags)
    return !tags.has('l') && present.every((name) => covered.has(name))
  })
}

/** The fields that all signatures of these domains cover; empty if there is none. */
function coveredBy({ signatures }: Evidence, domains: readonly string[]): ReadonlySet<string> {
  const [first, ...others] = signedBy(signatures, domains).map(({ tags }) => coveredFields(tags))
  return new Set([...(first ?? [])].filter((name) => others.every((covered) => covered.has(name))))
}

function signedBy(signatures: readonly Signature[], domains: readonly string[]): Signature[] {
  return signatures.filter(({ domain }) => domains.some((parent) => isWithin(domain, parent)))
}

/** Whether a block passes a signature of these domains that the mail may have had. */
function passes(mail: Evidence, block: Block, domains: readonly string[]): boolean {
  return block.results.some((result) => passesOneOf(result, domains) && canHavePassed(mail, block, result))
}

/**
 * On a mail with signatures, the result must be about one of them that can be verified and that did not fail at our own server. On a
 * mail without signatures, it must identify none, and must be where a sender cannot have put it, or in a form that the receiving server
 * would have removed.
 */
function canHavePassed({ signatures, failed }: Evidence, block: Block, result: MethodResult): boolean {
  if (signatures.length === 0) return !namesSignature(result) && (block.isProven || block.isPlain)
  return signatures.some((signature) => fits(result, signature) && isVerifiable(signature) && !failed.has(signature))
}

/** Servers do not report on a signature that lacks a required tag, so that a forger could claim a result for it. */
function isVerifiable({ tags }: Signature): boolean {
  return VERIFIABLE.every((name) => (tags.get(name) ?? '') !== '')
}

function isDirect(mail: Evidence): boolean {
  return passes(mail, mail.ours, mail.domains)
}

/** Whether our server passes a trusted forwarder's signature, and the forwarder's own results, right below, pass the bank's. */
function isForwardedBy(mail: Evidence, forwarder: string): boolean {
  if (FREE_MAIL.some((domain) => isWithin(forwarder, domain))) return false
  if (!passes(mail, mail.ours, [forwarder]) || !coverWhatMatters(mail, [forwarder])) return false
  const theirs = readBlock(mail.fields, mail.ours.end, (name) => isWithin(name, forwarder))
  if (!theirs) return false
  return theirs.isProven ? saysPassed(mail, theirs.results) : passes(mail, theirs, mail.domains)
}

/** Whether unforgeable results of an earlier server pass the bank's signature, which may have been changed or removed since. */
function saysPassed({ signatures, domains }: Evidence, results: readonly MethodResult[]): boolean {
  return results.some(
    (result) =>
      passesOneOf(result, domains) &&
      (!namesSignature(result) || signatures.some((signature) => fits(result, signature))),
  )
}

/**
 * The fields that the newest seal covers, if our server passes the ARC chain and, going back over trusted sealers only, one of them
 * passed the bank's signature. Null otherwise.
 */
function findSeal(mail: Evidence, sealers: readonly string[]): ReadonlySet<string> | null {
  if (!passesChain(mail.ours)) return null
  const chain = readArcChain(mail.fields)
  for (const { sealer, saw } of chain?.sets.toReversed() ?? []) {
    if (!sealers.includes(sealer)) return null
    const isReport = isWithin(saw.authservId, sealer) && !isBrokenUp(saw) && !contradict([saw])
    if (isReport && saysPassed(mail, saw.results)) return chain?.covered ?? null
  }
  return null
}

/** Below our `Received`, servers may leave a forged field that has no DKIM result (OpenDKIM's RemoveARFrom does). */
function passesChain({ results, isProven, isPlain }: Block): boolean {
  const isTrue = isProven || (isPlain && results.some(isAboutSignature))
  return isTrue && results.some((result) => result.method === 'arc' && isPass(result))
}

/** Whether every signature of these domains that the mail carries covers `To`, whether or not it still holds. */
export function isToSigned(header: Header, domains: readonly string[]): boolean {
  const signatures = readSignatures(header.fields)
  return signatures !== null && signedBy(signatures, domains).every(({ tags }) => coveredFields(tags).has('to'))
}
