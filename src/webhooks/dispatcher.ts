import type { Context } from '#context.ts'
import type { GuardedClient } from '#http/outbound/guarded-client.ts'
import { SECOND_MS } from '#shared/time.ts'
import { attemptDelivery, type AttemptResult } from './attempt-delivery.ts'
import { openCharger } from './charger.ts'
import type { LeasedEvent } from './claim-due-events.ts'
import type { Claimer } from './claimer.ts'
import { UNREADABLE_PAUSE_MS } from './finish-attempts.ts'
import { openTargets } from './read-target.ts'
import type { Recorder } from './recorder.ts'
import type { Slots } from './slots.ts'

/** Grace period for running attempts when the sender stops. */
const STOP_MS = 12 * SECOND_MS

/** Sends claimed events, as many at once as their receivers can take. */
export interface Dispatcher {
  /** Begins as many attempts as the limits allow. The next ones begin when others end. */
  dispatch(): void
  isIdle(): boolean
  /** Waits for the running attempts; interrupts those that take too long. */
  stop(): Promise<void>
}

export interface DispatcherParts {
  readonly client: GuardedClient
  readonly slots: Slots
  readonly claimer: Claimer
  readonly recorder: Recorder
  /** Called when an attempt has ended. */
  readonly onEnd: () => void
}

export function openDispatcher(ctx: Context, { client, slots, claimer, recorder, onEnd }: DispatcherParts): Dispatcher {
  const targets = openTargets(ctx)
  const charger = openCharger(ctx)
  const underWay = new Set<Promise<void>>()

  /** The result of the attempt; null if it may not begin. Delivers for disabled apps too, because sellers must learn of earlier payments. */
  const resultOf = async (event: LeasedEvent): Promise<AttemptResult | null> => {
    const target = await targets.of(event.appId)
    if (typeof target === 'string') return { event, error: target }
    return (await charger.charge(event)) ? attemptDelivery(ctx, client, target, event) : null
  }

  const deliver = async (event: LeasedEvent): Promise<void> => {
    const slot = slots.begin(event.appId)
    let hung = false
    try {
      const result = await resultOf(event)
      hung = result?.error === 'timeout'
      if (result?.error === 'secret_unreadable') claimer.pause(event.appId, UNREADABLE_PAUSE_MS)
      if (result) recorder.record(result, event.leaseEndsMs)
    } finally {
      slots.end(slot, hung)
    }
  }

  /** Releases an event whose lease might end during the attempt. */
  const releaseLate = async (event: LeasedEvent): Promise<void> => {
    await claimer.release(event)
    claimer.pollSoon()
  }

  const attempt = async (event: LeasedEvent): Promise<void> => {
    try {
      const isLate = event.leaseEndsMs - performance.now() < 2 * ctx.config.webhook.timeoutMs
      await (isLate ? releaseLate(event) : deliver(event))
    } catch (error) {
      ctx.log.error({ error, eventId: event.id }, 'a delivery failed on our side; its lease will expire')
    }
  }

  const begin = (event: LeasedEvent): void => {
    const running = attempt(event).then(() => {
      underWay.delete(running)
      // Uses the free slot at once, even while the sender waits for a claim.
      dispatch()
      if (underWay.size === 0) recorder.flush()
      onEnd()
    })
    underWay.add(running)
  }

  const dispatch = (): void => {
    const mayBegin = (appId: number): boolean => slots.capacity(appId) > 0
    for (let event = claimer.take(mayBegin); event; event = claimer.take(mayBegin)) begin(event)
  }

  return {
    dispatch,
    isIdle: () => underWay.size === 0,
    async stop() {
      const deadline = setTimeout(() => client.interrupt(), STOP_MS)
      await Promise.all(underWay)
      clearTimeout(deadline)
    },
  }
}
