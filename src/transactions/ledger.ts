import type { Context } from '#context.ts'
import type { Interval } from '#shared/interval.ts'
import { formatTimestampOrNull, type AppTime } from '#shared/time.ts'
import { isSoundPeriod, periodFrom } from '#subscriptions/period.ts'
import {
  listApplications,
  listSubscriptionsAfter,
  type PaymentApplication,
  type Subscription,
} from '#subscriptions/store.ts'
import { findLedgerFaults } from './store.ts'

/** Something in the books that does not add up. */
export interface LedgerFault {
  /** `subscription 12`, `transaction 7`, `event 3` */
  readonly subject: string
  readonly fault: string
}

export interface LedgerReport {
  /** Number of subscriptions recomputed. */
  readonly checked: number
  readonly faults: LedgerFault[]
}

const PAGE = 500

/**
 * Recomputes every period from `payment_applications`, and checks that every completed transaction has exactly one effect or one
 * flag, that the money adds up, and that every event is delivered, due or failed. `appId` null checks all apps.
 */
export async function verifyLedger(ctx: Context, appId: number | null): Promise<LedgerReport> {
  const faults: LedgerFault[] = []
  let checked = 0
  let afterId = 0
  for (;;) {
    const page = await listSubscriptionsAfter(ctx.db, appId, afterId, PAGE)
    for (const subscription of page) {
      const lines = await listApplications(ctx.db, subscription.id)
      faults.push(...faultsOf(subscription, lines))
    }
    checked += page.length
    afterId = page.at(-1)?.id ?? 0
    if (page.length < PAGE) break
  }
  faults.push(...(await findLedgerFaults(ctx.db, appId)))
  return { checked, faults }
}

/** What the lines of a subscription's ledger say against each other, and against the subscription. */
export function faultsOf(subscription: Subscription, lines: readonly PaymentApplication[]): LedgerFault[] {
  const subject = `subscription ${subscription.id}`
  const texts = lines.flatMap((line, index) => faultsOfLine(line, lines[index - 1] ?? null))
  const last = lines.at(-1)
  if (!last) texts.push('has no line in payment_applications')
  else {
    if (!isSame(last.endAfter, subscription.currentPeriodEnd)) {
      texts.push(`ends ${show(subscription.currentPeriodEnd)}, and its ledger ends ${show(last.endAfter)}`)
    }
    if (last.anchorAfter !== subscription.anchorDay) texts.push('has another anchor day than its ledger')
    if (last.isTrial !== subscription.inTrial) texts.push('is in trial where its ledger is not, or the reverse')
  }
  return texts.map((fault) => ({ subject, fault }))
}

function faultsOfLine(line: PaymentApplication, previous: PaymentApplication | null): string[] {
  const name = `revision ${line.revision}`
  const faults: string[] = []
  if (previous === null ? line.kind !== 'started' && line.kind !== 'imported' : line.kind === 'started') {
    faults.push(`${name} is ${line.kind} in the wrong place`)
  }
  if (!isSame(line.endBefore, previous?.endAfter ?? null))
    faults.push(`${name} continues from ${show(line.endBefore)}, not from the line before it`)
  if (line.kind === 'imported') return faults
  const interval: Interval = { unit: line.intervalUnit, count: line.intervalCount }
  const extendedEnd = line.kind === 'extended' ? line.endBefore : null
  const expected = periodFrom(extendedEnd ?? line.periodStart, interval, extendedEnd ? line.anchorBefore : null)
  if (!isSame(expected.end, line.endAfter) || expected.anchorDay !== line.anchorAfter) {
    faults.push(`${name} ends ${show(line.endAfter)}, and its interval gives ${show(expected.end)}`)
  }
  if (!isSoundPeriod(expected, interval, extendedEnd)) faults.push(`${name} is shorter than what was sold`)
  return faults
}

function isSame(a: AppTime | null, b: AppTime | null): boolean {
  return a?.getTime() === b?.getTime()
}

function show(instant: AppTime | null): string {
  return formatTimestampOrNull(instant) ?? 'never'
}
