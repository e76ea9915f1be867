import type { Errno } from '../db/lossy-server.ts'
import type { LineFault } from '../support/line.ts'
import { seededRandom } from '../support/seeded-random.ts'

export const LINES = ['database', 'mail server', 'Stripe', 'PayOS', 'Firebase', 'receiver'] as const
export type LineName = (typeof LINES)[number]

/**
 * What the database does to statements, counted from now: it answers an error; the connection is cut while the statement runs (which a
 * driver reports as 2013), or before it arrives; or every write is refused for a time.
 */
export type StatementFault =
  | { readonly kind: 'error'; readonly errno: Errno; readonly statement: number }
  | { readonly kind: 'answer lost'; readonly statement: number }
  | { readonly kind: 'lost'; readonly statement: number }
  | { readonly kind: 'read-only'; readonly ms: number }

/** One fault of a program: it lasts for one step of the load. */
export interface ProgramFault {
  readonly line: LineName
  readonly fault: LineFault | StatementFault
}

/** Longest pauses, well above and below the database's deadline in this trial, which is 1.5 s. */
const SHORT_MS = 600
const LONG_MS = 2500
const LONG_SHARE = 0.06
const DATABASE_SHARE = 0.45
const ERRNOS: readonly Errno[] = [1205, 1213, 1317, 1461]

type Random = (below: number) => number
type Make = (random: Random) => LineFault | StatementFault

/** Of every line. */
const COMMON: readonly Make[] = [
  (random) => ({ kind: 'delay', ms: 5 + random(40) }),
  (random) => ({ kind: 'cut', packet: 1 + random(12) }),
  (random) => ({ kind: 'cut inside', packet: 1 + random(12) }),
  (random) => ({ kind: 'split', pieces: 2 + random(8) }),
  (random) => ({ kind: 'freeze', ms: pause(random) }),
  (random) => ({ kind: 'refuse', times: 1 + random(4) }),
]
const OF_LINE: Record<LineName, readonly Make[]> = {
  database: [
    ...COMMON,
    (random) => ({ kind: 'cut', packet: 1 + random(400) }),
    ...ERRNOS.map((errno): Make => (random) => ({ kind: 'error', errno, statement: 1 + random(60) })),
    (random) => ({ kind: 'answer lost', statement: 1 + random(60) }),
    (random) => ({ kind: 'lost', statement: 1 + random(60) }),
    (random) => ({ kind: 'read-only', ms: pause(random) }),
  ],
  // A mail server that takes a mail and refuses it asks for it once more.
  'mail server': COMMON,
  Stripe: [...COMMON, () => ({ kind: 'replace answer' })],
  PayOS: [...COMMON, () => ({ kind: 'replace answer' })],
  Firebase: [...COMMON, () => ({ kind: 'replace answer' })],
  receiver: [...COMMON, () => ({ kind: 'replace answer' })],
}

function pause(random: Random): number {
  return 50 + random(random(1000) < LONG_SHARE * 1000 ? LONG_MS : SHORT_MS)
}

/** The program of a seed. A longer one begins with the shorter ones. */
export function programOf(seed: number, steps: number): ProgramFault[] {
  const next = seededRandom(seed)
  const random: Random = (below) => Math.floor(next() * below)
  return Array.from({ length: steps }, () => {
    const line = next() < DATABASE_SHARE ? 'database' : LINES[1 + random(LINES.length - 1)]!
    const makes = OF_LINE[line]
    return { line, fault: makes[random(makes.length)]!(random) }
  })
}

/** `database: error 1213 instead of statement 4` */
export function wordsOf({ line, fault }: ProgramFault): string {
  return `${line}: ${wordsOfFault(fault)}`
}

function wordsOfFault(fault: LineFault | StatementFault): string {
  switch (fault.kind) {
    case 'delay':
      return `everything is ${fault.ms} ms late`
    case 'cut':
      return `the connection is cut before packet ${fault.packet}`
    case 'cut inside':
      return `the connection is cut inside packet ${fault.packet}`
    case 'split':
      return `everything comes in ${fault.pieces} pieces`
    case 'freeze':
      return `frozen for ${fault.ms} ms`
    case 'refuse':
      return `all connections are cut, and the next ${fault.times} refused`
    case 'replace answer':
      return 'the next answer is lost, and 503 comes instead'
    case 'error':
      return `error ${fault.errno} instead of statement ${fault.statement}`
    case 'answer lost':
      return `the connection is cut while statement ${fault.statement} runs (2013)`
    case 'lost':
      return `the connection is cut before statement ${fault.statement} arrives`
    case 'read-only':
      return `read-only (1290) for ${fault.ms} ms`
  }
}
