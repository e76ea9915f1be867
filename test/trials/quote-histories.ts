import { deepStrictEqual } from 'node:assert'
import fc from 'fast-check'
import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { checkoutsByToken, findSessionOfTransaction } from '#checkout/store.ts'
import { viewCheckout } from '#checkout/view-checkout.ts'
import { resolveTransaction } from '#decisions/resolve-transaction.ts'
import { keptOf } from '#payments/balance.ts'
import { openRenewal } from '#renewals/open-renewal.ts'
import { AppError } from '#shared/errors.ts'
import { addMs, formatTimestamp, SECOND_MS, unixSeconds } from '#shared/time.ts'
import { endSubscription } from '#subscriptions/end-subscription.ts'
import { findSubscription, getSubscription, listLedger } from '#subscriptions/store.ts'
import { switchPlan } from '#subscriptions/switch-plan.ts'
import { discrepanciesOf } from '#ledger/verify-ledger.ts'
import { getTransaction } from '#transactions/store.ts'
import { startBankScenario } from '../pages/bank-scenario.ts'
import { events } from '#webhooks/store.ts'
import { histories, PRICES, PROMOTIONS, type Step } from '../subscriptions/histories.ts'
import { ReferenceModel, type Offer } from '../subscriptions/reference-model.ts'
import { requireCleanLedger } from '../support/clean-ledger.ts'
import { aCheckout, aPlan, aPromotion, priceId, reportPayment, SERVER } from '../support/factories.ts'
import type { Scenario } from '../support/scenario.ts'

export interface HistoryOptions {
  /** Each is the history of a different end user. */
  readonly histories: number
  readonly seed: number
}

const OPERATOR = operator('trial')
const STATES = { pending: 'open', completed: 'paid', refunded: 'refunded', void: 'void' } as const

/**
 * Random interleavings of open, renew, switch, pay (late, out of order, twice), refund, end and complete, by the service's commands on the
 * database. After each step plan, price, end, flags, renewals and pages must agree with a model that was written from the
 * rules; after each history its ledger must replay without a discrepancy, and at the end all ledgers must add up. Throws otherwise.
 */
export async function quoteHistories({ histories: count, seed }: HistoryOptions) {
  const scenario = await startBankScenario({}, { BILLING_CHECKOUT_TTL_SECONDS: '3600' })
  try {
    const prices = await sellPrices(scenario)
    const figures = { steps: 0, payments: 0, discounted: 0, refunded: 0, flags: {} as Record<string, number> }
    for (const [index, steps] of fc.sample(histories(30), { numRuns: count, seed }).entries()) {
      const one = new History(scenario, `user-${index}`, prices)
      for (const [number, step] of steps.entries()) {
        await one.take(step).catch((error: unknown) => {
          const walked = steps.slice(0, number + 1)
          throw new Error(`history ${index} of seed ${seed}: ${JSON.stringify(walked)}`, { cause: error })
        })
      }
      await one.requireReplay()
      figures.steps += steps.length
      for (const { state, flag, used, left, promotion } of one.offers) {
        if (state !== 'open' && promotion) figures.discounted += 1
        if (state !== 'open') figures.payments += 1
        if (state !== 'open' && used + left < 1) figures.refunded += 1
        if (flag !== null) figures.flags[flag] = (figures.flags[flag] ?? 0) + 1
      }
    }
    await requireCleanLedger(scenario.service.ctx, 'after the histories')
    return { histories: count, seed, ...figures }
  } finally {
    await scenario.service.stop()
  }
}

/** Sells the prices of the histories, with their promotions; returns the prices in order. */
async function sellPrices(scenario: Scenario): Promise<string[]> {
  const { ctx } = scenario.service
  const ids = new Map<object, string>()
  for (const code of new Set(PRICES.map(({ plan }) => plan))) {
    const sold = PRICES.filter(({ plan }) => plan === code)
    const plan = await aPlan(ctx, scenario.app, { code, prices: sold.map(bodyOf) })
    for (const [index, price] of sold.entries()) ids.set(price, priceId(plan, index))
  }
  for (const { code, percent, amount, everyPeriod, once, plan } of PROMOTIONS) {
    const off = percent === undefined ? { amount, currency: 'VND' } : { percent }
    const plans = plan === null ? {} : { plan_codes: [plan] }
    await aPromotion(ctx, scenario.app, { code, ...off, ...plans, every_period: everyPeriod, once_per_user: once })
  }
  return PRICES.map((price) => ids.get(price)!)
}

function bodyOf({ days, trialDays }: (typeof PRICES)[number]): object {
  const length = days === null ? { interval_unit: 'lifetime' } : { interval_unit: 'day', interval_count: days }
  const trial = { amount: 10_000, interval_unit: 'day', interval_count: trialDays }
  return { amount: 100_000, currency: 'VND', ...length, ...(trialDays === null ? {} : { trial }) }
}

/** One end user, in the service and in the model. A new kind of step needs a case in `take`, and one in the model. */
class History {
  readonly #scenario: Scenario
  readonly #ref: string
  readonly #prices: readonly string[]
  readonly #model: ReferenceModel
  readonly #transactions = new Map<Offer, number>()
  #reports = 0

  constructor(scenario: Scenario, ref: string, prices: readonly string[]) {
    this.#scenario = scenario
    this.#ref = ref
    this.#prices = prices
    this.#model = new ReferenceModel(unixSeconds(scenario.service.ctx.clock.now()))
  }

  get offers(): readonly Offer[] {
    return this.#model.offers
  }

  async take(step: Step): Promise<void> {
    const { ctx } = this.#scenario.service
    switch (step.kind) {
      case 'pass':
        ctx.clock.set(formatTimestamp(addMs(ctx.clock.now(), step.seconds * SECOND_MS)))
        this.#model.pass(step.seconds)
        break
      case 'checkout':
        await this.#checkout(step)
        break
      case 'renew':
        await this.#renew()
        break
      case 'switch':
        await this.#agrees(this.#model.switch(step.price), () =>
          perform(ctx, SERVER, switchPlan, { price_id: this.#prices[step.price] }, this.#scope),
        )
        break
      case 'end':
        await this.#agrees(this.#model.end(), () =>
          perform(ctx, OPERATOR, endSubscription, { note: 'trial' }, this.#scope),
        )
        break
      case 'pay':
        await this.#pay(step.offer, step.late)
        break
      case 'complete':
        await this.#complete(step.offer)
        break
      case 'refund':
        await this.#refund(step.offer, step.isHalf)
    }
    await this.#compare()
  }

  /** The ledger of this end user replays without a discrepancy. */
  async requireReplay(): Promise<void> {
    const { db } = this.#scenario.service.ctx
    const subscription = await findSubscription(db, this.#scenario.app.app.id, this.#ref)
    if (subscription) deepStrictEqual(discrepanciesOf(subscription, await listLedger(db, subscription.id)), [])
  }

  get #scope() {
    return { app: this.#scenario.app.app, externalRef: this.#ref }
  }

  async #checkout({ price, skipsTrial, promotion }: Extract<Step, { kind: 'checkout' }>): Promise<void> {
    const offer = this.#model.checkout(price, skipsTrial, promotion)
    const code = promotion === undefined ? {} : { promotion_code: PROMOTIONS[promotion]!.code }
    const body = { external_ref: this.#ref, price_id: this.#prices[price], skip_trial: skipsTrial, ...code }
    const opened = await this.#agrees(offer !== null, () =>
      aCheckout(this.#scenario.service.ctx, this.#scenario.app, body),
    )
    if (!offer || !opened) return
    this.#transactions.set(offer, opened.transaction_id!)
    const { purpose } = await getTransaction(this.#scenario.service.ctx.db, opened.transaction_id!)
    deepStrictEqual(purpose, offer.purpose)
  }

  /** Through the renewal link, to the bank page. */
  async #renew(): Promise<void> {
    const { ctx } = this.#scenario.service
    const offer = this.#model.renew()
    const opened = await this.#agrees(offer !== null, async () => {
      const { renewalToken } = await getSubscription(ctx.db, this.#scenario.app.app.id, this.#ref)
      return openRenewal(ctx, renewalToken, { payment_method: 'bank_transfer' })
    })
    if (!offer || opened?.kind !== 'go_on') return
    const token = /\/checkout\/([0-9a-f]{64})\/bank$/.exec(opened.redirectUrl)?.[1]
    const found = await checkoutsByToken.find(ctx.db, token ?? '')
    deepStrictEqual(found?.transaction.id, this.#transactions.get(offer) ?? found?.transaction.id)
    this.#transactions.set(offer, found!.transaction.id)
  }

  async #pay(index: number, late: number): Promise<void> {
    const { ctx } = this.#scenario.service
    const offer = pick(this.offers, index)
    if (!offer) return
    const transactionId = this.#transactions.get(offer)!
    const { amount } = await getTransaction(ctx.db, transactionId)
    this.#model.pay(offer, late)
    this.#reports += 1
    const payment = {
      provider: 'bank_transfer',
      eventId: null,
      reference: `${this.#ref} ${this.#reports}`,
      transactionId,
      amount,
      currency: 'VND',
      paidAt: addMs(ctx.clock.now(), -late * SECOND_MS),
    }
    await reportPayment(ctx, payment)
    // Reporting the same money again changes nothing.
    await reportPayment(ctx, payment)
  }

  async #complete(index: number): Promise<void> {
    const offer = pick(this.offers, index)
    if (offer?.flag !== 'superseded') return
    const transactionId = this.#transactions.get(offer)!
    await this.#agrees(this.#model.complete(offer), () =>
      resolveTransaction(this.#scenario.service.ctx, OPERATOR, {
        transactionId,
        action: 'complete',
        note: 'trial',
      }),
    )
  }

  async #refund(index: number, isHalf: boolean): Promise<void> {
    const { ctx } = this.#scenario.service
    const offer = pick(this.offers, index)
    if (!offer) return
    const transactionId = this.#transactions.get(offer)!
    const before = await getTransaction(ctx.db, transactionId)
    const part = this.#model.refund(offer, isHalf)
    this.#reports += 1
    await this.#agrees(part !== null, () =>
      resolveTransaction(ctx, OPERATOR, {
        transactionId,
        action: 'refund',
        note: 'trial',
        reference: `${this.#ref} back ${this.#reports}`,
        ...(isHalf ? { amount: Math.max(1, keptOf(before) / 2) } : {}),
      }),
    )
    const after = await getTransaction(ctx.db, transactionId)
    deepStrictEqual(after.amountRefunded - before.amountRefunded, (part ?? 0) * before.amount)
  }

  /** Runs it; throws if it is refused and the model allows it, or the reverse. Null if it was refused. */
  async #agrees<T>(isAllowed: boolean, run: () => Promise<T>): Promise<T | null> {
    const result = await run().catch((error: unknown) => {
      if (error instanceof AppError && error.status < 500) return error
      throw error
    })
    const refusal = result instanceof AppError ? result : null
    deepStrictEqual(refusal === null, isAllowed, refusal?.message)
    return refusal ? null : (result as T)
  }

  async #compare(): Promise<void> {
    const { db } = this.#scenario.service.ctx
    const held = this.#model.held
    const found = await findSubscription(db, this.#scenario.app.app.id, this.#ref)
    deepStrictEqual(
      found && [
        `price_${found.priceId}`,
        found.currentPeriodEnd ? unixSeconds(found.currentPeriodEnd) : Infinity,
        found.promotionCode,
      ],
      held && [this.#prices[PRICES.indexOf(held.price)], held.end, this.#model.lasting?.code ?? null],
    )
    const ofUser = [this.#scenario.app.app.id, this.#ref, 'subscription.renewed'] as const
    const renewals = await db.count(events, 'WHERE app_id = ? AND external_ref = ? AND event_type = ?', ofUser)
    deepStrictEqual(renewals, this.#model.renewals, 'subscription.renewed')
    for (const [offer, id] of this.#transactions) {
      const { status, flagReason, amount, discountAmount, amountUsed, amountLeft } = await getTransaction(db, id)
      deepStrictEqual({ amount, discount: discountAmount }, this.#model.amountOf(offer))
      deepStrictEqual(
        [STATES[status], flagReason, amountUsed, amountLeft],
        [offer.state, offer.flag, offer.used * amount, offer.left * amount],
      )
      if (offer.state === 'open') await this.#comparePage(offer, id)
    }
  }

  /** The page of an open checkout shows the effect of a payment now, and takes no money that would not be applied. */
  async #comparePage(offer: Offer, transactionId: number): Promise<void> {
    const { ctx } = this.#scenario.service
    const session = await findSessionOfTransaction(ctx.db, transactionId)
    const { state, preview } = await viewCheckout(ctx, session!.token)
    const refusal = this.#model.refusal(offer, this.#model.now)
    const isOvertaken =
      refusal === 'superseded' || refusal === 'trial_already_used' || this.#model.hasLostPromotion(offer)
    deepStrictEqual(state, this.#model.now >= offer.expires ? 'expired' : isOvertaken ? 'overtaken' : 'open')
    if (preview?.kind === 'refused') deepStrictEqual(preview.reason, refusal)
    else
      deepStrictEqual(
        preview?.period.end ? unixSeconds(preview.period.end) : Infinity,
        refusal ?? this.#model.endIfPaidNow(offer),
      )
  }
}

function pick<T>(list: readonly T[], index: number): T | undefined {
  return list[index % Math.max(1, list.length)]
}
