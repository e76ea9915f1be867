import { readFileSync } from 'node:fs'

const TAIL_LINES = 12

/** The last lines of the server's log. */
export function logTail(path: string): string {
  try {
    return readFileSync(path, 'utf8').trimEnd().split('\n').slice(-TAIL_LINES).join('\n')
  } catch {
    return `(no log at ${path})`
  }
}
