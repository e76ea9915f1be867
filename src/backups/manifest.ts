import type { Contents } from './store.ts'

/** The description of a backup, in its last line. */
export interface Manifest extends Contents {
  readonly taken_at: string
  /** The newest migration of the database. */
  readonly schema: string
  /** The version of the database server. */
  readonly server: string
  /** The ids of the encryption keys that its secrets need; never a key. */
  readonly keys: readonly string[]
}

type Sums<T> = Readonly<Record<string, Readonly<Record<string, T>>>>

const BEGINNING = '-- paygate-manifest '
/** More than a manifest of all tables takes. */
export const MANIFEST_BYTES = 262_144

/** The manifest as a comment, which programs that run the SQL skip. */
export function manifestLine(manifest: Manifest): string {
  return `\n${BEGINNING}${JSON.stringify({ ...manifest, sums: eachSum(manifest.sums, String) })}\n`
}

/** The manifest in the last bytes of a dump; null if it has none. */
export function manifestIn(end: Buffer): Manifest | null {
  const text = end.toString('utf8')
  const from = text.lastIndexOf(`\n${BEGINNING}`)
  if (from === -1 || !text.endsWith('\n')) return null
  const read = JSON.parse(text.slice(from + 1 + BEGINNING.length)) as Manifest & { readonly sums: Sums<string> }
  return { ...read, sums: eachSum(read.sums, BigInt) }
}

function eachSum<T, U>(sums: Sums<T>, change: (sum: T) => U): Sums<U> {
  return Object.fromEntries(
    Object.entries(sums).map(([table, columns]) => [
      table,
      Object.fromEntries(Object.entries(columns).map(([column, sum]) => [column, change(sum)])),
    ]),
  )
}
