import { appNow } from '#apps/app-time.ts'
import type { NotifiedApp } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import type { Interval } from '#shared/interval.ts'
import type { AppTime } from '#shared/time.ts'
import { queueNode } from './queue-node.ts'
import { randomHex } from '#shared/crypto.ts'
import { emitEvents, isSentTo, type Emission } from '#webhooks/emit-event.ts'
import { effectiveStatus } from './lifecycle.ts'
import type { Period } from './period.ts'
import { expiredData, updatedData } from './present.ts'
import {
  getPlanAndCustomer,
  insertLedgerLine,
  insertSubscription,
  updateSubscription,
  type LedgerLine,
  type Subscription,
  type PlanAndCustomer,
  type SubscriptionView,
} from './store.ts'

/** The columns that a change sets; those that it omits stay the same. */
interface Columns {
  readonly planId?: number
  readonly priceId?: number
  readonly customerId?: number | null
  readonly period?: Period
  readonly inTrial?: boolean
  readonly promotionCode?: string | null
}

/** The columns of a new subscription; those that it omits are null or false. */
interface NewColumns extends Columns {
  readonly planId: number
  readonly priceId: number
  readonly period: Period
}

/** What the caller knows of a new ledger line: why the plan, the price or the period change (R101). */
export interface NewLine extends Pick<
  LedgerLine,
  'transactionId' | 'kind' | 'isTrial' | 'paidAt' | 'openedAt' | 'isAccepted'
> {
  readonly interval: Interval
}

interface Change {
  /** The plan and the customer after the change, which its events name. */
  readonly planAndCustomer: PlanAndCustomer
  /** Events that are written before `subscription.updated`. */
  readonly announce?: (view: SubscriptionView) => readonly Emission[]
}

interface ChangeOfExisting extends Change {
  readonly before: Subscription
  readonly set: Columns
  /** Null only if plan, price and period stay the same. */
  readonly line: NewLine | null
}

interface FirstChange extends Change {
  readonly before: null
  readonly owner: Pick<Subscription, 'endUserId' | 'externalRef'>
  readonly set: NewColumns
  readonly line: NewLine
}

/**
 * The only writer of a subscription's plan, price, period and customer. Saves the change with its ledger line, emits
 * `subscription.updated`, and queues the realtime node, which is written after the commit, before the caller is answered.
 */
export async function recordChange(
  tx: Tx,
  app: NotifiedApp,
  change: ChangeOfExisting | FirstChange,
): Promise<SubscriptionView> {
  const { before, line, planAndCustomer, announce } = change
  const saved = change.before ? await saveChange(tx, app, change) : await saveNew(tx, app, change)
  if (line) await addLine(tx, saved, before, line)
  const view = { subscription: saved, ...planAndCustomer }
  const updated: Emission = {
    app,
    type: 'subscription.updated',
    data: updatedData(view, appNow(app, tx.now)),
    transactionId: line?.transactionId ?? null,
  }
  const ended = before ? await endBeforeRestart(tx, app, before, line) : []
  await emitEvents(tx, [...ended, ...(announce?.(view) ?? []), updated])
  if (app.realtimeDatabaseUrl !== null) await queueNode(tx, app, saved)
  return view
}

/** The end of the period before one that starts anew, which the expiry job has not reported and can no longer see (R118). */
async function endBeforeRestart(
  tx: Tx,
  app: NotifiedApp,
  before: Subscription,
  line: NewLine | null,
): Promise<Emission[]> {
  const { currentPeriodEnd: end, status, inTrial } = before
  const isUnreported = line?.kind === 'restarted' && status === 'active' && end !== null && end <= line.paidAt
  if (!isUnreported || !isSentTo(app, 'subscription.expired')) return []
  const view = { subscription: before, ...(await getPlanAndCustomer(tx, before)) }
  const data = expiredData(view, end, inTrial)
  return [{ app, type: 'subscription.expired', data }]
}

async function addLine(tx: Tx, saved: Subscription, before: Subscription | null, line: NewLine): Promise<void> {
  await insertLedgerLine(tx, {
    appId: saved.appId,
    subscriptionId: saved.id,
    revision: saved.revision,
    transactionId: line.transactionId,
    kind: line.kind,
    planId: saved.planId,
    priceId: saved.priceId,
    intervalUnit: line.interval.unit,
    intervalCount: line.interval.count,
    isTrial: line.isTrial,
    endBefore: before?.currentPeriodEnd ?? null,
    anchorBefore: before?.anchorDay ?? null,
    periodStart: saved.periodStart,
    endAfter: saved.currentPeriodEnd,
    anchorAfter: saved.anchorDay,
    paidAt: line.paidAt,
    openedAt: line.openedAt,
    isAccepted: line.isAccepted,
  })
}

async function saveNew(tx: Tx, app: NotifiedApp, { owner, set, line }: FirstChange): Promise<Subscription> {
  const { planId, priceId, period, customerId = null, inTrial = false, promotionCode = null } = set
  const now = appNow(app, tx.now)
  return insertSubscription(tx, {
    appId: app.id,
    endUserId: owner.endUserId,
    externalRef: owner.externalRef,
    planId,
    priceId,
    customerId,
    ...periodColumns(period, line, now),
    inTrial,
    promotionCode,
    revision: 1,
    renewalToken: randomHex(32),
    remindersStoppedAt: null,
    createdAt: now,
    updatedAt: now,
  })
}

async function saveChange(tx: Tx, app: NotifiedApp, { before, set, line }: ChangeOfExisting): Promise<Subscription> {
  const { period, ...columns } = set
  const now = appNow(app, tx.now)
  const changed = {
    ...columns,
    ...(period ? periodColumns(period, line, now) : {}),
    revision: before.revision + 1,
    updatedAt: now,
  }
  await updateSubscription(tx, before.id, before.revision, changed)
  return { ...before, ...changed }
}

function periodColumns(period: Period, line: NewLine | null, now: AppTime) {
  // A period that was sold may be over before its payment is known. The expiry job finds it as it finds any other, and reports its end (R118).
  const isSold = line !== null && line.kind !== 'imported' && line.kind !== 'ended'
  return {
    status: isSold ? 'active' : effectiveStatus({ currentPeriodEnd: period.end }, now),
    periodStart: period.start,
    currentPeriodEnd: period.end,
    anchorDay: period.anchorDay,
  }
}
