import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { appNow } from '#apps/app-time.ts'
import { advanceTestClock } from '#test-clock/advance-test-clock.ts'
import { sendDueReminders } from '#mails/reminders/send-due-reminders.ts'
import { HOUR_MS, unixSeconds } from '#shared/time.ts'
import { emptyTestDatabase } from '../support/database.ts'
import { DAILY, MONTHLY, priceId, SERVER } from '../support/factories.ts'
import { switchTo } from '../support/operators.ts'
import type { InboxBehaviour } from '../mail/smtp-inbox.ts'
import { aScene, partsOf, type Scene } from '../renewals/scene.ts'
import { stageAt } from './stage-at.ts'

/** Prices whose periods have all stages, some, or none but the notice. */
const PRICES = [
  MONTHLY,
  { ...MONTHLY, interval_unit: 'week', interval_count: 1 },
  { ...DAILY, interval_count: 2 },
  DAILY,
]

type Step =
  | { readonly kind: 'pass'; readonly hours: number }
  | { readonly kind: 'jump'; readonly hours: number }
  | { readonly kind: 'pay' | 'stop' | 'start' }
  | { readonly kind: 'switch'; readonly price: number }
  | { readonly kind: 'mail server'; readonly behaviour: InboxBehaviour }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('pass' as const), hours: fc.integer({ min: 1, max: 30 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('jump' as const), hours: fc.integer({ min: 1, max: 400 }) }) },
  { weight: 3, arbitrary: fc.constant<Step>({ kind: 'pay' }) },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: 'stop' }) },
  { weight: 2, arbitrary: fc.constant<Step>({ kind: 'start' }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('switch' as const), price: fc.nat(PRICES.length - 1) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('mail server' as const),
      behaviour: fc.constantFrom<InboxBehaviour>('accept', 'accept', 'refuse-data', 'drop-early', 'lose-answer'),
    }),
  },
)

/** Walks one history on the real code, and holds every mail against the rules as it leaves. */
class History {
  readonly #scene: Scene
  readonly #sent = new Set<string>()
  #isRunning = true
  #seen = 0

  constructor(scene: Scene) {
    this.#scene = scene
  }

  async take(next: Step): Promise<void> {
    const { ctx, seller, plan, inbox } = this.#scene
    switch (next.kind) {
      case 'pass':
        for (let hour = 0; hour < next.hours; hour += 12) {
          ctx.clock.advance(`${Math.min(12, next.hours - hour)}h`)
          await this.#sweep()
        }
        return
      case 'jump':
        await advanceTestClock(ctx, SERVER, await this.#scene.app(), { advance_seconds: (next.hours * HOUR_MS) / 1000 })
        await this.#check(true)
        return
      case 'pay': {
        const { priceId: id } = await this.#scene.subscription()
        await this.#scene.subscribe({ price: plan.prices.findIndex((price) => price.id === id) })
        return
      }
      case 'stop':
        this.#isRunning = false
        return
      case 'start':
        this.#isRunning = true
        return this.#sweep()
      case 'switch':
        await switchTo(ctx, 'tester', seller.app, priceId(plan, next.price))
        return
      case 'mail server':
        inbox.behaviour = next.behaviour
        // A mail that the server refused waits up to an hour before it is tried again.
        ctx.clock.advance('1h')
    }
  }

  async #sweep(): Promise<void> {
    if (this.#isRunning) await sendDueReminders(this.#scene.ctx)
    await this.#check(this.#isRunning)
  }

  async #check(hasSwept: boolean): Promise<void> {
    const { inbox, ctx } = this.#scene
    const { periodStart, currentPeriodEnd } = await this.#scene.subscription()
    const end = currentPeriodEnd ?? expect.fail('no end')
    const now = appNow(await this.#scene.app(), ctx.clock.now())
    const stage = stageAt(periodStart, end, now)
    for (const mail of inbox.mails.slice(this.#seen)) {
      const [, , periodEnd, sentStage] = partsOf(mail)
      const key = `${periodEnd} ${sentStage}`
      expect(this.#sent.has(key), `${key} was sent before`).to.equal(false)
      expect([Number(periodEnd), Number(sentStage)], 'the window holds now').to.deep.equal([unixSeconds(end), stage])
      this.#sent.add(key)
    }
    this.#seen = inbox.mails.length
    if (hasSwept && stage !== null && inbox.behaviour === 'accept') {
      const isSent = this.#sent.has(`${unixSeconds(end)} ${stage}`)
      expect(isSent, `stage ${stage} should have been sent by ${now.toISOString()}`).to.equal(true)
    }
  }
}

describe('reminders over random histories', () => {
  it('of payments, switches, clock moves, restarts and mail server failures: no stage twice, none outside its window, none missing', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat(PRICES.length - 1),
        fc.array(step, { minLength: 5, maxLength: 25 }),
        async (price, steps) => {
          await emptyTestDatabase()
          const scene = await aScene({ prices: PRICES })
          try {
            await scene.subscribe({ price })
            const history = new History(scene)
            for (const next of steps) await history.take(next)
          } finally {
            await scene.stop()
          }
        },
      ),
      { numRuns: 8 },
    )
  })
})
