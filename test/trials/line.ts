import { seededRandom } from '../support/seeded-random.ts'
import { checkBooks, comeToRest, type LineBooks } from './line-books.ts'
import { newJournal, runJobs, workOnce, type Work } from './line-load.ts'
import { programOf, wordsOf } from './line-program.ts'
import { openLineRig } from './line-rig.ts'

export interface LineOptions {
  readonly seed: number
  /** The length of the program: one fault for each six hours. */
  readonly steps: number
  /** How long the whole takes, in simulated time; those after the program are without faults. */
  readonly days?: number
  readonly print?: (line: string) => void
  /** Called with everything at rest, before the books are checked. */
  readonly beforeCheck?: (work: Work) => Promise<void> | void
}

const STEP = '6h'
const STEPS_OF_A_DAY = 4
const A_MONTH = 30

/**
 * Buys, renews and refunds for a month while the lines to the database, the mail server, Stripe, PayOS, Firebase and the receivers fail by
 * the program of the seed. A caller who is refused calls again with the same `Idempotency-Key`. Throws at the first answer that is not
 * true, and if anything is lost, or done twice, in the end.
 */
export async function lineFaults(options: LineOptions) {
  const { seed, steps, days = A_MONTH, print = () => undefined, beforeCheck = () => undefined } = options
  const rig = await openLineRig()
  const work: Work = { rig, journal: newJournal(), random: seededRandom(seed + 1_000_000_000) }
  try {
    for (const [index, fault] of programOf(seed, steps).entries()) {
      print(`${index + 1}. ${wordsOf(fault)}`)
      rig.begin(fault)
      await workOnce(work, index, fault.line)
      rig.clock.advance(STEP)
    }
    rig.begin(null)
    for (let day = Math.ceil(steps / STEPS_OF_A_DAY); day < days; day += 1) {
      rig.clock.advance('1d')
      await runJobs(work)
    }
    await comeToRest(work)
    await beforeCheck(work)
    const books = await checkBooks(work)
    print(wordsOfBooks(books))
    const { refusals, slowestMs } = work.journal
    return { seed, steps, struck: rig.struck(), ...books, refusals, slowestMs }
  } finally {
    await rig.stop()
  }
}

function wordsOfBooks({ payments, refunds, webhooks, repeated, mails, unconfirmed, nodes }: LineBooks): string {
  const counted = `${payments} payments, ${refunds} refunds, ${webhooks} webhooks, ${mails} mails, ${nodes} nodes`
  return `nothing lost, nothing twice, every answer true: ${counted}; ${repeated} webhooks came again under their id, ${unconfirmed} mails are shown as unconfirmed`
}
