import { readArcChain } from './arc.ts'
import type { MethodResult } from './authentication-results.ts'
import {
  coveredBy,
  coverWhatMatters,
  failedSignatures,
  isVerifiable,
  mayBeAbout,
  namesSignature,
  readSignatures,
  type Signature,
  type SignedHeader,
} from './dkim-signatures.ts'
import { isWithin } from './domains.ts'
import { valuesOf, type Header } from './header-fields.ts'
import { isAboutSignature, isPass, isReliable, passesOneOf, readBlock, type Block } from './server-results.ts'

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

/** Fields that must not occur twice: the signature covers one of them, and a reader may use the other. */
const SINGLE_FIELDS = ['from', 'subject', 'content-type', 'content-transfer-encoding', 'mime-version', 'message-id']

/**
 * How the header proves that the mail is from one of `domains` (a bank's); null if it does not. Only the results of our
 * own receiving server count, and those of servers that it vouches for. Malformed or contradictory fields count as forgeries (R194).
 */
export function trustOfHeader(header: Header, domains: readonly string[], settings: TrustSettings): Trust | null {
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

interface Evidence extends SignedHeader {
  /** The results of our own server. */
  readonly ours: Block
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
  return signatures.some(
    (signature) => mayBeAbout(result, signature) && isVerifiable(signature) && !failed.has(signature),
  )
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
      (!namesSignature(result) || signatures.some((signature) => mayBeAbout(result, signature))),
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
    const isReport = isWithin(saw.authservId, sealer) && isReliable(saw)
    if (isReport && saysPassed(mail, saw.results)) return chain?.covered ?? null
  }
  return null
}

/** Below our `Received`, servers may leave a forged field that has no DKIM result (OpenDKIM's RemoveARFrom does). */
function passesChain({ results, isProven, isPlain }: Block): boolean {
  const isTrue = isProven || (isPlain && results.some(isAboutSignature))
  return isTrue && results.some((result) => result.method === 'arc' && isPass(result))
}
