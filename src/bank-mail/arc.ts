import { parseAuthenticationResults, type AuthenticationResults } from './authentication-results.ts'
import { valuesOf, type HeaderField } from './header-fields.ts'
import { coveredFields, parseTags } from './tag-list.ts'

/** One server's set of ARC fields (RFC 8617): its results, and its seal over them. */
export interface ArcSet {
  /** The sealer's domain, `d=` of its seal, in lower case. */
  readonly sealer: string
  readonly saw: AuthenticationResults
}

export interface ArcChain {
  /** Oldest first. */
  readonly sets: readonly ArcSet[]
  /** Names, in lower case, of the fields that the newest signature covers. */
  readonly covered: ReadonlySet<string>
}

const MAX_SETS = 50

/**
 * The ARC chain of a mail; null unless it is well formed. It must have sets 1 to N with exactly one field of each kind, `cv=none` on the
 * first and `cv=pass` on the others. Every part must be readable, and the newest signature must cover the whole body and the header fields
 * that we read. The receiving server verifies the cryptography and reports it as `arc=pass`.
 */
export function readArcChain(fields: readonly HeaderField[]): ArcChain | null {
  const seals = byInstance(valuesOf(fields, 'arc-seal'), signatureInstance)
  const signatures = byInstance(valuesOf(fields, 'arc-message-signature'), signatureInstance)
  const reports = byInstance(valuesOf(fields, 'arc-authentication-results'), reportInstance)
  if (!seals || !signatures || !reports || seals.length === 0) return null
  if (signatures.length !== seals.length || reports.length !== seals.length) return null
  const covered = coveredWithWhole(signatures.at(-1) as string)
  if (!covered?.has('from') || !covered.has('subject')) return null
  const sets = seals.map((seal, index) =>
    readSet(index + 1, seal, signatures[index] as string, reports[index] as string),
  )
  return sets.includes(null) ? null : { sets: sets as ArcSet[], covered }
}

/** Field values ordered by instance; null unless the instances are 1 to N, each once. */
function byInstance(values: readonly string[], instanceOf: (value: string) => number | null): string[] | null {
  if (values.length > MAX_SETS) return null
  const ordered: string[] = []
  for (const value of values) {
    const instance = instanceOf(value)
    if (instance === null || instance > values.length || ordered[instance - 1] !== undefined) return null
    ordered[instance - 1] = value
  }
  return ordered
}

function signatureInstance(value: string): number | null {
  return readInstance(parseTags(value)?.get('i'))
}

function reportInstance(value: string): number | null {
  return readInstance(REPORT.exec(value)?.[1])
}

const REPORT = /^[ \t]*i[ \t]*=[ \t]*([0-9]{1,2})[ \t]*;(.*)$/s

function readInstance(text: string | undefined): number | null {
  return text !== undefined && /^[1-9][0-9]?$/.test(text) ? Number(text) : null
}

function readSet(instance: number, seal: string, signature: string, report: string): ArcSet | null {
  const sealTags = parseTags(seal)
  const sealer = sealTags?.get('d')?.toLowerCase()
  const saw = parseAuthenticationResults(REPORT.exec(report)?.[2] ?? '')
  if (!sealer || !saw || !parseTags(signature)?.get('b')) return null
  // A seal with `h=` is invalid (RFC 8617, 4.1.3).
  if (sealTags?.get('cv')?.toLowerCase() !== (instance === 1 ? 'none' : 'pass') || sealTags.has('h')) return null
  return { sealer, saw }
}

/** The fields that the signature covers together with the whole body; null if it leaves out part of the body. */
function coveredWithWhole(signature: string): ReadonlySet<string> | null {
  const tags = parseTags(signature)
  return tags && !tags.has('l') ? coveredFields(tags) : null
}
