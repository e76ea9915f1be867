import type { NotifiedApp } from '#apps/store.ts'
import { invalidField } from '#shared/errors.ts'

/** The longest path that the database accepts, in bytes of UTF-8 with a slash for each key. */
const PATH_BYTES = 768
/** The longest key inside a node, whose path must fit too. */
const INNER_KEY = 'purchaseSource'

/** Whether the app's clients read their state from a realtime database that we write. */
export function hasRealtimeDatabase(app: NotifiedApp): app is AppWithDatabase {
  return app.realtimeDatabaseUrl !== null && app.realtimeServiceAccount !== null && app.realtimePath !== null
}

export type AppWithDatabase = NotifiedApp & {
  realtimeDatabaseUrl: string
  realtimeServiceAccount: string
  realtimePath: string
}

/** The keys that lead to the node of an end user: `users/{uid}/subscription` with the uid in its place. */
export function nodeKeys(path: string, externalRef: string): string[] {
  // A function, because `$` has a meaning in a replacement string.
  return path.split('/').map((segment) => segment.replace('{uid}', () => externalRef))
}

/**
 * Refuses an `external_ref` that the app's database cannot use as a key, so that it fails at the checkout rather than after the payment.
 * Throws `invalid_request`. Apps without a database may use any.
 */
export function checkRealtimeKey(app: NotifiedApp, externalRef: string): void {
  if (!hasRealtimeDatabase(app)) return
  const problem = externalRef === '' ? 'must not be empty' : problemOf(nodeKeys(app.realtimePath, externalRef))
  if (problem) throw invalidField('external_ref', `${problem}: it is a key in the app's realtime database`)
}

function problemOf(keys: readonly string[]): string | null {
  if (keys.some((key) => /[.$#[\]/]/.test(key))) return 'must not contain . $ # [ ] or /'
  if (keys.some(hasControlCharacter)) return 'must not contain control characters'
  const bytes = Buffer.byteLength(`/${[...keys, INNER_KEY].join('/')}`)
  return bytes > PATH_BYTES ? `makes a path of more than ${PATH_BYTES} bytes` : null
}

function hasControlCharacter(key: string): boolean {
  return Array.from(key).some((character) => character < ' ' || character === '\u007f')
}
