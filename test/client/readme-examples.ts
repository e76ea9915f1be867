import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A block of TypeScript in the README of the client. */
export interface Example {
  /** The framework whose handler it is; null for any other block. */
  readonly name: string | null
  readonly code: string
}

export function readmeExamples(): Example[] {
  const readme = readFileSync(join(import.meta.dirname, '../../client/README.md'), 'utf8')
  return [...readme.matchAll(/^```ts(?: (\w+))?\n(.*?)^```/gms)].map(([, name = null, code = '']) => ({ name, code }))
}
