import { readFileSync } from 'node:fs'

const TAIL_LINES = 12
/** More than the advice that the installer prints after an error. */
const ADVICE_LINES = 40

/** The last lines of the server's log, up to its last error if it has a recent one. */
export function logTail(path: string): string {
  try {
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
    const error = lines.findLastIndex((line) => line.includes('[ERROR]'))
    const isRecent = error >= Math.max(0, lines.length - ADVICE_LINES)
    const end = isRecent ? error + 1 : lines.length
    return lines.slice(Math.max(0, end - TAIL_LINES), end).join('\n')
  } catch {
    return `(no log at ${path})`
  }
}
