import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from '#context.ts'
import { GuardedClient } from '#http/outbound/guarded-client.ts'
import { MINUTE_MS, SECOND_MS } from '#shared/time.ts'
import { Claimer } from './claimer.ts'
import { Dispatcher } from './dispatcher.ts'
import { Recorder } from './recorder.ts'
import { Slots } from './slots.ts'
import { difference, type Tally } from './tally.ts'

/** Pause after an error of the database. */
const PAUSE_MS = SECOND_MS
const REPORT_MS = MINUTE_MS

export interface SenderOptions {
  readonly signal: AbortSignal
  /** Ends when no event is due and no attempt is running. */
  readonly untilIdle?: boolean
  /** Receives the function that wakes the sender. */
  readonly onWake?: (wake: () => void) => void
  /** Called once a minute with the outcomes since the last call. */
  readonly report?: (tally: Tally) => void
}

/**
 * Sends due events until the signal, or until none is left. The claimer leases events a little ahead, the dispatcher sends as many at once as
 * their receivers can take, and the recorder records the outcomes in groups. A slow or hanging receiver delays only its own app. On the
 * signal, the sender stops claiming, releases unsent events and lets running attempts end. Returns the outcomes.
 */
export async function runSender(
  ctx: Context,
  { signal, untilIdle = false, onWake, report }: SenderOptions,
): Promise<Tally> {
  const client = new GuardedClient({ allowInsecure: ctx.config.webhook.allowInsecure })
  const wakeUp = openWakeUpSignal()
  const slots = new Slots(() => performance.now())
  const recorder = new Recorder(ctx, wakeUp.wake)
  const claimer = new Claimer(ctx, slots)
  const dispatcher = new Dispatcher(ctx, { client, slots, claimer, recorder, onEnd: wakeUp.wake })
  const wake = (): void => {
    claimer.pollSoon()
    wakeUp.wake()
  }
  onWake?.(wake)
  signal.addEventListener('abort', wake)
  const reports = report ? openReports(recorder.tally, report) : null
  let lastPassMs = performance.now()
  try {
    while (!signal.aborted) {
      // After a standstill, leases may have expired although the answers have arrived: these are recorded before anything is claimed again.
      if (performance.now() - lastPassMs > ctx.config.webhook.timeoutMs) {
        await dispatcher.drain()
        await recorder.drain()
      }
      lastPassMs = performance.now()
      reports?.reportIfDue()
      dispatcher.dispatch()
      if (await (untilIdle ? claimer.claim() : claimOrPause(ctx, claimer))) continue
      if (untilIdle && [claimer, dispatcher, recorder].every((part) => part.isIdle())) break
      await wakeUp.wait(claimer.untilPollMs())
    }
  } finally {
    await releaseUnsent(ctx, claimer)
    await dispatcher.stop()
    await recorder.drain()
    signal.removeEventListener('abort', wake)
    client.close()
  }
  return { ...recorder.tally }
}

/** Keeps a permanent sender alive while the database is unreachable. */
async function claimOrPause(ctx: Context, claimer: Claimer): Promise<boolean> {
  try {
    return await claimer.claim()
  } catch (error) {
    ctx.log.error({ error }, 'due webhooks cannot be read')
    claimer.pollSoon()
    await delay(PAUSE_MS)
    return false
  }
}

async function releaseUnsent(ctx: Context, claimer: Claimer): Promise<void> {
  try {
    await claimer.releaseAll()
  } catch (error) {
    ctx.log.error({ error }, 'leases cannot be released; they will expire')
  }
}

/** Reports the growth of a tally, first at once and then every minute. */
function openReports(tally: Readonly<Tally>, report: (tally: Tally) => void): { reportIfDue(): void } {
  let reportedAtMs = -Infinity
  let reported = { ...tally }
  return {
    reportIfDue() {
      if (performance.now() - reportedAtMs < REPORT_MS) return
      reportedAtMs = performance.now()
      report(difference(tally, reported))
      reported = { ...tally }
    },
  }
}

interface WakeUpSignal {
  readonly wake: () => void
  /** Resolves on `wake`, at once if it was called since the last wait, and after `ms` at the latest. Calls close together count once. */
  wait(ms: number): Promise<void>
}

function openWakeUpSignal(): WakeUpSignal {
  let isPending = false
  let answer: (() => void) | null = null
  return {
    wake: () => {
      isPending = true
      answer?.()
    },
    async wait(ms) {
      if (!isPending) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms)
          answer = () => {
            clearTimeout(timer)
            answer = null
            setImmediate(resolve)
          }
        })
      }
      isPending = false
      answer = null
    },
  }
}
