import type { Context } from '#context.ts'
import type { GuardedClient } from '#http/outbound/guarded-client.ts'
import { SECOND_MS } from '#shared/time.ts'
import { AttemptCounter } from './attempt-counter.ts'
import { attemptDelivery, type AttemptResult } from './attempt-delivery.ts'
import type { LeasedEvent } from './claim-due-events.ts'
import type { Claimer } from './claimer.ts'
import { UNREADABLE_PAUSE_MS } from './finish-attempts.ts'
import { Targets } from './read-target.ts'
import type { Recorder } from './recorder.ts'
import type { Slots } from './slots.ts'

/** Grace period for running attempts when the sender stops. */
const STOP_MS = 12 * SECOND_MS

export interface DispatcherParts {
  readonly client: GuardedClient
  readonly slots: Slots
  readonly claimer: Claimer
  readonly recorder: Recorder
  /** Called when an attempt has ended. */
  readonly onEnd: () => void
}

/** Sends claimed events, as many at once as their receivers can take. */
export class Dispatcher {
  readonly #ctx: Context
  readonly #client: GuardedClient
  readonly #slots: Slots
  readonly #claimer: Claimer
  readonly #recorder: Recorder
  readonly #onEnd: () => void
  readonly #targets: Targets
  readonly #counter: AttemptCounter
  readonly #underWay = new Set<Promise<void>>()

  constructor(ctx: Context, { client, slots, claimer, recorder, onEnd }: DispatcherParts) {
    this.#ctx = ctx
    this.#client = client
    this.#slots = slots
    this.#claimer = claimer
    this.#recorder = recorder
    this.#onEnd = onEnd
    this.#targets = new Targets(ctx)
    this.#counter = new AttemptCounter(ctx)
  }

  /** Begins as many attempts as the limits allow. The next ones begin when others end. */
  dispatch(): void {
    const mayBegin = (appId: number): boolean => this.#slots.capacity(appId) > 0
    for (let event = this.#claimer.take(mayBegin); event; event = this.#claimer.take(mayBegin)) this.#begin(event)
  }

  isIdle(): boolean {
    return this.#underWay.size === 0
  }

  /** Waits for the attempts that are running now. */
  async drain(): Promise<void> {
    await Promise.all(this.#underWay)
  }

  /** Waits for the running attempts; interrupts those that take too long. */
  async stop(): Promise<void> {
    const deadline = setTimeout(() => this.#client.interrupt(), STOP_MS)
    await Promise.all(this.#underWay)
    clearTimeout(deadline)
  }

  #begin(event: LeasedEvent): void {
    const running = this.#attempt(event).then(() => {
      this.#underWay.delete(running)
      // Uses the free slot at once, even while the sender waits for a claim.
      this.dispatch()
      if (this.#underWay.size === 0) this.#recorder.flush()
      this.#onEnd()
    })
    this.#underWay.add(running)
  }

  async #attempt(event: LeasedEvent): Promise<void> {
    try {
      const isLate = event.leaseEndsMs - performance.now() < 2 * this.#ctx.config.webhook.timeoutMs
      await (isLate ? this.#releaseLate(event) : this.#deliver(event))
    } catch (error) {
      this.#ctx.log.error({ error, eventId: event.id }, 'a delivery failed on our side; its lease will expire')
    }
  }

  /** Releases an event whose lease might end during the attempt. */
  async #releaseLate(event: LeasedEvent): Promise<void> {
    await this.#claimer.release(event)
    this.#claimer.pollSoon()
  }

  async #deliver(event: LeasedEvent): Promise<void> {
    const slot = this.#slots.begin(event.appId)
    let hung = false
    try {
      const result = await this.#resultOf(event)
      hung = result?.error === 'timeout'
      if (result?.error === 'secret_unreadable') this.#claimer.pause(event.appId, UNREADABLE_PAUSE_MS)
      if (result) this.#recorder.record(result, event.leaseEndsMs)
    } finally {
      this.#slots.end(slot, hung)
    }
  }

  /** The result of the attempt; null if it may not begin. Delivers for disabled apps too, because sellers must learn of earlier payments. */
  async #resultOf(event: LeasedEvent): Promise<AttemptResult | null> {
    const target = await this.#targets.of(event.appId)
    if (target.kind === 'none') return { kind: 'skipped', event, error: target.error }
    const mayBegin = await this.#counter.count(event)
    return mayBegin ? attemptDelivery(this.#ctx, this.#client, target.address, event) : null
  }
}
