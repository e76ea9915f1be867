import { readFileSync } from 'node:fs'

/** The line that each user gets once the server accepts connections. Any other line is the reason why it does not. */
export const READY = 'ready'
/** The exit code if another supervisor holds the lock. */
export const ALREADY_SUPERVISED = 75

const TAIL_LINES = 12

/** The last lines of the server's log. */
export function logTail(path: string): string {
  try {
    return readFileSync(path, 'utf8').trimEnd().split('\n').slice(-TAIL_LINES).join('\n')
  } catch {
    return `(no log at ${path})`
  }
}
