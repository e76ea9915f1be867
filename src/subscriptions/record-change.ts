import { appNow } from '#apps/app-time.ts'
import type { NotifiedApp } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import type { Interval } from '#shared/interval.ts'
import type { AppTime } from '#shared/time.ts'
import { queueNode } from './queue-node.ts'
import { randomHex } from '#shared/crypto.ts'
import { emitEvents, type Emission } from '#webhooks/emit-event.ts'
import type { EventType } from '#webhooks/events.ts'
import { effectiveStatus } from './lifecycle.ts'
import type { Period } from './period.ts'
import { updatedData, type SubscriptionNames, type SubscriptionView } from './present.ts'
import {
  insertApplication,
  insertSubscription,
  updateSubscription,
  type PaymentApplication,
  type Subscription,
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

export interface NewSubscription {
  readonly endUserId: number
  readonly externalRef: string
}

/** Why a change sets the plan, the price or the period, as the line of the ledger records it (R101). */
export interface Reason extends Pick<
  PaymentApplication,
  'transactionId' | 'kind' | 'isTrial' | 'appliedAt' | 'openedAt'
> {
  readonly interval: Interval
  readonly isAccepted?: boolean
}

export interface SubscriptionChange {
  readonly set: Columns
  /** Null only if plan, price and period stay the same. */
  readonly reason: Reason | null
  /** The plan and the customer after the change, which its events name. */
  readonly names: SubscriptionNames
  /** The payment behind it. */
  readonly transactionId?: number
  /** Events that are written before `subscription.updated`. */
  readonly announce?: (view: SubscriptionView) => readonly Emission<EventType>[]
}

/**
 * The only writer of subscriptions. Saves the change with the line of the ledger that explains it, emits `subscription.updated`, and queues
 * the realtime node, which is written after the commit, before the caller is answered.
 */
export async function recordChange(
  tx: Tx,
  app: NotifiedApp,
  current: Subscription | NewSubscription,
  { set, reason, names, transactionId, announce }: SubscriptionChange,
): Promise<SubscriptionView> {
  const saved = 'id' in current ? await saveChange(tx, app, current, set) : await saveNew(tx, app, current, set)
  if (reason) await explain(tx, saved, 'id' in current ? current : null, reason)
  const view = { subscription: saved, ...names }
  const updated: Emission<EventType> = {
    app,
    type: 'subscription.updated',
    data: updatedData(view, appNow(app, tx.now)),
    subject: { externalRef: saved.externalRef, transactionId: transactionId ?? null },
  }
  await emitEvents(tx, [...(announce?.(view) ?? []), updated])
  if (app.realtimeDatabaseUrl !== null) await queueNode(tx, app, saved)
  return view
}

/** Adds the line of the ledger. */
async function explain(tx: Tx, saved: Subscription, before: Subscription | null, reason: Reason): Promise<void> {
  await insertApplication(tx, {
    appId: saved.appId,
    subscriptionId: saved.id,
    revision: saved.revision,
    transactionId: reason.transactionId,
    kind: reason.kind,
    planId: saved.planId,
    priceId: saved.priceId,
    intervalUnit: reason.interval.unit,
    intervalCount: reason.interval.count,
    isTrial: reason.isTrial,
    endBefore: before?.currentPeriodEnd ?? null,
    anchorBefore: before?.anchorDay ?? null,
    periodStart: saved.periodStart,
    endAfter: saved.currentPeriodEnd,
    anchorAfter: saved.anchorDay,
    appliedAt: reason.appliedAt,
    openedAt: reason.openedAt,
    isAccepted: reason.isAccepted ?? false,
  })
}

async function saveNew(
  tx: Tx,
  app: NotifiedApp,
  { endUserId, externalRef }: NewSubscription,
  set: Columns,
): Promise<Subscription> {
  const { planId, priceId, period, customerId = null, inTrial = false, promotionCode = null } = set
  if (planId === undefined || priceId === undefined || !period)
    throw new Error('a new subscription needs a plan, a price and a period')
  const now = appNow(app, tx.now)
  return insertSubscription(tx, {
    appId: app.id,
    endUserId,
    externalRef,
    planId,
    priceId,
    customerId,
    ...columnsOf(period, now),
    inTrial,
    promotionCode,
    revision: 1,
    renewalToken: randomHex(32),
    remindersStoppedAt: null,
    createdAt: now,
    updatedAt: now,
  })
}

async function saveChange(tx: Tx, app: NotifiedApp, current: Subscription, set: Columns): Promise<Subscription> {
  const { period, ...columns } = set
  const now = appNow(app, tx.now)
  const changed = {
    ...columns,
    ...(period ? columnsOf(period, now) : {}),
    revision: current.revision + 1,
    updatedAt: now,
  }
  await updateSubscription(tx, current.id, current.revision, changed)
  return { ...current, ...changed }
}

function columnsOf(period: Period, now: AppTime) {
  return {
    status: effectiveStatus({ currentPeriodEnd: period.end }, now),
    periodStart: period.start,
    currentPeriodEnd: period.end,
    anchorDay: period.anchorDay,
  }
}
