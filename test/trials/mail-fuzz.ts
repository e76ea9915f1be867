import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { unixSeconds } from '#shared/time.ts'
import { startService } from '../support/api.ts'
import { OUR_MX } from '../support/bank-mails.ts'
import { watchLoop } from '../support/loop-lag.ts'
import type { SenderResult, SenderTask } from './mail-fuzz-sender.ts'

export interface FuzzOptions {
  readonly mails: number
  readonly seed: number
  readonly connections: number
}

export interface FuzzFigures {
  readonly seed: number
  readonly mails: number
  readonly answers: SenderResult
  /** Mails on which the reading thread gave up or was replaced. */
  readonly unread: number
  /** The longest block of the thread that answers requests. */
  readonly longestHoldMs: number
  readonly seconds: number
}

const SECRET = 'relay-secret-for-trials'
const LONGEST_HOLD_MS = 250

/**
 * Posts mutated mails to the relay's endpoint, from another thread. Throws if one is answered with anything but a decision
 * that it is not a payment, or with 400 other than for its size, and if the service's event loop was blocked for 250 ms.
 */
export async function mailFuzz({ mails, seed, connections }: FuzzOptions): Promise<FuzzFigures> {
  const service = await startService({ BILLING_RELAY_SECRET: SECRET, BILLING_RELAY_AUTHSERV_IDS: OUR_MX })
  const startedMs = performance.now()
  const lag = watchLoop()
  try {
    const timestamp = unixSeconds(service.ctx.clock.now())
    const answers = await send({ url: service.url, secret: SECRET, timestamp, mails, seed, connections })
    const figures: FuzzFigures = {
      seed,
      mails,
      answers,
      unread: service.ctx.logged.filter((line) => line.includes('could not be read')).length,
      longestHoldMs: Math.round(lag.longest()),
      seconds: Math.round((performance.now() - startedMs) / 1000),
    }
    check(figures)
    return figures
  } finally {
    lag.stop()
    await service.stop()
  }
}

async function send(task: SenderTask): Promise<SenderResult> {
  const sender = new Worker(new URL('./mail-fuzz-sender.ts', import.meta.url), { workerData: task })
  const [answers] = (await once(sender, 'message')) as [SenderResult]
  await sender.terminate()
  return answers
}

function check(figures: FuzzFigures): void {
  const wrong = Object.entries(figures.answers).filter(
    ([answer]) => !/^(200 (ignored|rejected) \w+|400 refused)$/.test(answer),
  )
  const answered = Object.values(figures.answers).reduce((sum, count) => sum + count, 0)
  if (wrong.length > 0) {
    const counts = wrong.map(([answer, count]) => `${count} × ${answer}`).join(', ')
    throw new Error(`seed ${figures.seed}: answered ${counts}; ${figures.unread} mails could not be read`)
  }
  if (answered !== figures.mails) throw new Error(`seed ${figures.seed}: ${answered} of ${figures.mails} were answered`)
  if (figures.longestHoldMs >= LONGEST_HOLD_MS) {
    throw new Error(`seed ${figures.seed}: the event loop was blocked for ${figures.longestHoldMs} ms`)
  }
}
