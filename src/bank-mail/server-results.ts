import { parseAuthenticationResults, type AuthenticationResults, type MethodResult } from './authentication-results.ts'
import { isWithin } from './domains.ts'
import { withoutComments, type HeaderField } from './header-fields.ts'

/** More results than any server writes; OpenDKIM reads no field that has more. */
const MAX_PLAIN_RESULTS = 16

/** Longer than any server's `Received`. */
const MAX_RECEIVED_LENGTH = 2000

export interface Block {
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
export function readBlock(
  fields: readonly HeaderField[],
  start: number,
  isOwn: (name: string) => boolean,
): Block | null {
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
    if (hasReceived) possible.push(report)
    else proven.push(report)
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

/** Whether a single report of a server can be trusted: the sender's text is not in it, and it does not contradict itself. */
export function isReliable(report: AuthenticationResults): boolean {
  return !isBrokenUp(report) && !contradict([report])
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
    isSaidBesidePass(results, 'arc', (said) => said !== 'pass') ||
    signersDiffer(reports)
  )
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

export function isAboutSignature({ method }: MethodResult): boolean {
  return method === 'dkim'
}

export function isPassedSignature(result: MethodResult): boolean {
  return isAboutSignature(result) && isPass(result)
}

/** A pass under a key that its domain publishes for tests does not count (RFC 6376, 3.6.1, `t=y`); some servers comment on it. */
export function isPass(result: MethodResult): boolean {
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
export function passesOneOf(result: MethodResult, domains: readonly string[]): boolean {
  const signer = isPassedSignature(result) ? signedDomain(result) : null
  return signer !== null && domains.some((parent) => isWithin(signer, parent))
}
