import { isWithin } from './domains.ts'
import { valuesOf, type Header, type HeaderField } from './header-fields.ts'
import { isAboutSignature, isPass, isPassedSignature, type Block } from './server-results.ts'
import { coveredFields, parseTags, VERIFIABLE } from './tag-list.ts'
import type { MethodResult } from './authentication-results.ts'

/** More signatures than any genuine mail has. */
const MAX_SIGNATURES = 10

/** Fields that the bank's signature must cover if present. `read-trust.ts` checks those that determine how the body is read. */
const COVERED_FIELDS = ['from', 'subject']

const SIGNATURE_PROPERTIES = ['header.d', 'header.i', 'header.s', 'header.b']

export interface Signature {
  readonly domain: string
  readonly tags: ReadonlyMap<string, string>
}

/** The fields of a header, and the signatures among them. */
export interface SignedHeader {
  readonly fields: readonly HeaderField[]
  readonly signatures: readonly Signature[]
}

/** The DKIM signatures that the mail carries; null if one cannot be read or there are too many. */
export function readSignatures(fields: readonly HeaderField[]): Signature[] | null {
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
  const isPlainName = (name = ''): boolean => /^[\w.-]*$/.test(name)
  const identity = tags.get('i') ?? ''
  return (
    isPlainName(tags.get('d')) && isPlainName(tags.get('s')) && /^[\w.!#$%&'*+/?^`{|}~-]*(?:@[\w.-]+)?$/.test(identity)
  )
}

/** Whether the result can be about the signature: no property contradicts it. */
export function mayBeAbout({ properties }: MethodResult, { domain, tags }: Signature): boolean {
  const named = properties.get('header.d')
  const identity = properties.get('header.i')
  const selector = properties.get('header.s')
  const value = properties.get('header.b')
  const identityDomain = identity?.slice(identity.lastIndexOf('@') + 1).toLowerCase()
  return (
    (named === undefined || named.toLowerCase() === domain) &&
    (identityDomain === undefined || isWithin(identityDomain, domain)) &&
    (selector === undefined || selector.toLowerCase() === tags.get('s')?.toLowerCase()) &&
    (value === undefined || (tags.get('b') ?? '').replace(/[ \t]/g, '').startsWith(value))
  )
}

/** Whether the result identifies one signature, not only the domain. */
export function namesSignature({ properties }: MethodResult): boolean {
  return properties.has('header.s') || properties.has('header.b')
}

/** The signatures that failed. A failure without properties is about a signature that no pass fits. */
export function failedSignatures({ all }: Block, signatures: readonly Signature[]): ReadonlySet<Signature> {
  const passes = all.filter(isPassedSignature)
  const failures = all.filter((result) => isAboutSignature(result) && !isPass(result))
  const named = failures.filter(({ properties }) => SIGNATURE_PROPERTIES.some((name) => properties.has(name)))
  const isFailed = (signature: Signature): boolean =>
    named.some((result) => mayBeAbout(result, signature)) ||
    (failures.length > named.length && !passes.some((result) => mayBeAbout(result, signature)))
  return new Set(signatures.filter(isFailed))
}

/** Servers do not report on a signature that lacks a required tag, so that a forger could claim a result for it. */
export function isVerifiable({ tags }: Signature): boolean {
  return VERIFIABLE.every((name) => (tags.get(name) ?? '') !== '')
}

/** Whether every signature of these domains covers the whole body and the fields that matter. */
export function coverWhatMatters({ fields, signatures }: SignedHeader, domains: readonly string[]): boolean {
  const present = COVERED_FIELDS.filter((name) => valuesOf(fields, name).length > 0)
  return signedBy(signatures, domains).every(({ tags }) => {
    const covered = coveredFields(tags)
    return !tags.has('l') && present.every((name) => covered.has(name))
  })
}

/** The fields that all signatures of these domains cover; empty if there is none. */
export function coveredBy(
  { signatures }: Pick<SignedHeader, 'signatures'>,
  domains: readonly string[],
): ReadonlySet<string> {
  const [first, ...others] = signedBy(signatures, domains).map(({ tags }) => coveredFields(tags))
  return new Set([...(first ?? [])].filter((name) => others.every((covered) => covered.has(name))))
}

function signedBy(signatures: readonly Signature[], domains: readonly string[]): Signature[] {
  return signatures.filter(({ domain }) => domains.some((parent) => isWithin(domain, parent)))
}

/** Whether every signature of these domains that the mail carries covers `To`, whether or not it still holds. */
export function isToSigned(header: Header, domains: readonly string[]): boolean {
  const signatures = readSignatures(header.fields)
  return signatures !== null && signedBy(signatures, domains).every(({ tags }) => coveredFields(tags).has('to'))
}
