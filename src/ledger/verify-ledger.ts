import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import type { Queries } from '#db/queries.ts'
import { readPages } from '#db/read-pages.ts'
import { formatTimestampOrNull, type AppTime } from '#shared/time.ts'
import {
  decide,
  planChoiceAfter,
  effectiveStatus,
  type PlanChoice,
  type PaymentEffect,
  type SubscriptionState,
} from '#subscriptions/lifecycle.ts'
import { isValidPeriod, periodFrom } from '#subscriptions/period.ts'
import {
  findSubscriptionById,
  listLedger,
  listLedgers,
  type QuotedLine,
  type Subscription,
} from '#subscriptions/store.ts'
import { listSubscriptionsAfter } from '#subscriptions/lists/store.ts'
import { findBrokenRules, type Discrepancy } from './store.ts'

export interface LedgerReport {
  /** Number of subscriptions recomputed. */
  readonly checked: number
  readonly faults: Discrepancy[]
}

const PAGE = 500

/**
 * Replays the lines of every subscription in `payment_applications`, in order, with the function that applies payments. Also finds rows
 * that break the rules of this folder, about money, periods, events and queues. Payments may continue in the meantime. `appId` null
 * checks all apps. It waits for `between` after each step.
 */
export async function verifyLedger(
  ctx: Context,
  appId: number | null,
  between: () => Promise<void> = () => Promise.resolve(),
): Promise<LedgerReport> {
  const faults: Discrepancy[] = []
  let checked = 0
  const pages = readPages<Subscription>(PAGE, (last, limit) =>
    listSubscriptionsAfter(ctx.db, appId, last?.id ?? 0, limit),
  )
  for await (const page of pages) {
    const ledgers = await listLedgers(
      ctx.db,
      page.map(({ id }) => id),
    )
    for (const subscription of page) {
      const found = discrepanciesOf(subscription, ledgers.get(subscription.id) ?? [])
      if (found.length > 0) faults.push(...(await currentDiscrepancies(ctx.db, subscription, found)))
    }
    checked += page.length
    await between()
  }
  faults.push(...(await findBrokenRules(ctx.db, appId, await databaseNow(ctx, ctx.db), between)))
  return { checked, faults }
}

/** The discrepancies of a subscription, computed again if it changed between the reads of its row and of its lines. */
async function currentDiscrepancies(db: Queries, read: Subscription, found: Discrepancy[]): Promise<Discrepancy[]> {
  const now = await findSubscriptionById(db, read.id)
  if (!now || now.revision === read.revision) return found
  return currentDiscrepancies(db, now, discrepanciesOf(now, await listLedger(db, now.id)))
}

/** The places at which the lines of a subscription's ledger contradict the rules, each other, or the subscription. */
export function discrepanciesOf(subscription: Subscription, lines: readonly QuotedLine[]): Discrepancy[] {
  const subject = `subscription ${subscription.id}`
  const texts: string[] = []
  let previous: QuotedLine | null = null
  let last: PlanChoice | null = null
  for (const line of lines) {
    texts.push(...lineDiscrepancies(line, previous, last).map((text) => `revision ${line.revision} ${text}`))
    last = planChoiceAfter(last, line)
    previous = line
  }
  if (!previous) texts.push('has no line in payment_applications')
  else texts.push(...differencesFrom(previous, subscription))
  return texts.map((fault) => ({ subject, fault }))
}

function differencesFrom(last: QuotedLine, subscription: Subscription): string[] {
  const found: string[] = []
  if (!isSame(last.periodStart, subscription.periodStart))
    found.push(`starts ${show(subscription.periodStart)}, but its ledger starts ${show(last.periodStart)}`)
  if (!isSame(last.endAfter, subscription.currentPeriodEnd))
    found.push(`ends ${show(subscription.currentPeriodEnd)}, but its ledger ends ${show(last.endAfter)}`)
  if (last.anchorAfter !== subscription.anchorDay) found.push('has a different anchor day than its ledger')
  if (last.isTrial !== subscription.inTrial) found.push('is in trial but its ledger is not, or the reverse')
  if (last.planId !== subscription.planId || last.priceId !== subscription.priceId)
    found.push('has a different plan or price than its ledger')
  return found
}

function lineDiscrepancies(line: QuotedLine, previous: QuotedLine | null, last: PlanChoice | null): string[] {
  const found: string[] = []
  if (previous === null ? line.kind !== 'started' && line.kind !== 'imported' : line.kind === 'started')
    found.push(`is ${line.kind} in the wrong place`)
  if (!isSame(line.endBefore, previous?.endAfter ?? null))
    found.push(`continues from ${show(line.endBefore)}, not from the end of the previous line`)
  const before = previous && stateAfter(previous)
  switch (line.kind) {
    case 'imported':
      return found
    case 'switched':
      return isSame(line.endBefore, line.endAfter) ? found : [...found, 'is a plan switch that moves the end']
    case 'ended':
      return isSame(line.endAfter, line.paidAt)
        ? found
        : [...found, 'is an end that does not end the period at its own time']
    case 'started':
    case 'extended':
    case 'restarted':
      return [...found, ...arithmeticDiscrepancies(line), ...replayDiscrepancies(line, before, last)]
  }
}

/** Compares the line's period with what its interval gives from its start. */
function arithmeticDiscrepancies(line: QuotedLine): string[] {
  const interval = { unit: line.intervalUnit, count: line.intervalCount }
  const extendedEnd = line.kind === 'extended' ? line.endBefore : null
  const expected = periodFrom(extendedEnd ?? line.periodStart, interval, extendedEnd ? line.anchorBefore : null)
  const found: string[] = []
  if (!isSame(expected.end, line.endAfter) || expected.anchorDay !== line.anchorAfter)
    found.push(`ends ${show(line.endAfter)}, but its interval gives ${show(expected.end)}`)
  if (!isValidPeriod(expected, interval, extendedEnd)) found.push('is shorter than the interval sold')
  return found
}

/** Compares the line with what the rules give. An earlier version had other rules: for its lines, only the arithmetic is checked. */
function replayDiscrepancies(line: QuotedLine, before: SubscriptionState | null, last: PlanChoice | null): string[] {
  if (line.isOlder) return []
  const effect = decide(before, last, quoteOfLine(line), line.paidAt)
  if (isEffectOf(effect, line)) return []
  if (before && shortens(line, before) && effect.kind !== 'restarted')
    return [`moves a paid end from ${show(line.endBefore)} back to ${show(line.endAfter)} without a decision`]
  return [`is ${line.kind} on price ${line.priceId}, but the rules say ${describe(effect)}`]
}

function quoteOfLine(line: QuotedLine) {
  return {
    purpose: line.purpose ?? 'trial',
    isByRenewalLink: line.isByRenewalLink,
    planId: line.soldPlanId,
    priceId: line.soldPriceId,
    interval: { unit: line.intervalUnit, count: line.intervalCount },
    openedAt: line.openedAt,
    isTrialUsed: false,
    isAccepted: line.isAccepted,
  }
}

function isEffectOf(effect: PaymentEffect, line: QuotedLine): boolean {
  return (
    effect.kind === line.kind &&
    isSame(effect.period.end, line.endAfter) &&
    effect.planId === line.planId &&
    effect.priceId === line.priceId &&
    effect.isTrial === line.isTrial
  )
}

/** Whether the line ends a valid period earlier than was paid for. */
function shortens(line: QuotedLine, before: SubscriptionState): boolean {
  if (effectiveStatus(before, line.paidAt) === 'expired' || line.endAfter === null) return false
  return before.currentPeriodEnd === null || line.endAfter < before.currentPeriodEnd
}

function stateAfter(line: QuotedLine): SubscriptionState {
  const { planId, priceId, periodStart, endAfter: currentPeriodEnd, anchorAfter: anchorDay } = line
  return { planId, priceId, periodStart, currentPeriodEnd, anchorDay }
}

function describe(effect: PaymentEffect): string {
  if (effect.kind === 'refused') return effect.reason
  return `${effect.kind} on price ${effect.priceId} until ${show(effect.period.end)}`
}

function isSame(a: AppTime | null, b: AppTime | null): boolean {
  return a?.getTime() === b?.getTime()
}

function show(instant: AppTime | null): string {
  return formatTimestampOrNull(instant) ?? 'never'
}
