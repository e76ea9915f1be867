import { appNow } from '#apps/app-time.ts'
import type { NotifiedApp } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import type { Interval } from '#shared/interval.ts'
import type { AppTime } from '#shared/time.ts'
import { queueNode } from './queue-node.ts'
import { randomHex } from '#shared/crypto.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import { effectiveStatus } from './lifecycle.ts'
import type { Period } from './period.ts'
import { updatedData, viewSubscription, type KnownNames, type SubscriptionView } from './present.ts'
import {
  addSubscription,
  insertApplication,
  insertFirstApplication,
  updateSubscription,
  type PaymentApplication,
  type Subscription,
} from './store.ts'

/** What a change sets; what it leaves out stays. */
export interface Change {
  readonly planId?: number
  readonly priceId?: number
  readonly customerId?: number | null
  readonly period?: Period
  readonly inTrial?: boolean
}

export interface NewSubscription {
  readonly endUserId: number
  readonly externalRef: string
}

/** Why a change sets the plan, the price or the period: what the line of the ledger says of it (contract 7). */
export interface Reason extends Pick<
  PaymentApplication,
  'transactionId' | 'kind' | 'isTrial' | 'appliedAt' | 'openedAt'
> {
  readonly interval: Interval
  readonly isAccepted?: boolean
}

/** The payment behind a change, and the event that it emits before `subscription.updated`. */
export interface Occasion {
  readonly transactionId: number
  /** Rows that were read before, so that the events need no further reads. */
  readonly known: KnownNames
  announce(view: SubscriptionView): Promise<void>
}

/**
 * The only writer of subscriptions. Saves the change with the line of the ledger that explains it, emits `subscription.updated`, and queues
 * the realtime node, which is written after the commit, before the caller is answered. `reason` is null only where plan, price and period
 * stay. The id of a new subscription is known once the transaction has settled.
 */
export async function recordChange(
  tx: Tx,
  app: NotifiedApp,
  current: Subscription | NewSubscription,
  change: Change,
  reason: Reason | null,
  occasion?: Occasion,
): Promise<Subscription> {
  const saved = 'id' in current ? await saveChange(tx, app, current, change) : await saveNew(tx, app, current, change)
  if (reason) await explain(tx, saved, 'id' in current ? current : null, reason)
  const view = await viewSubscription(tx, saved, occasion?.known)
  await occasion?.announce(view)
  const subject = { externalRef: saved.externalRef, transactionId: occasion?.transactionId ?? null }
  await emitEvent(tx, app, 'subscription.updated', updatedData(view, appNow(app, tx.now)), subject)
  await queueNode(tx, app, saved)
  return saved
}

/** Adds the line of the ledger, right behind the subscription that `before` does not name yet. */
async function explain(tx: Tx, saved: Subscription, before: Subscription | null, reason: Reason): Promise<void> {
  const line = {
    appId: saved.appId,
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
  }
  await (before ? insertApplication(tx, { ...line, subscriptionId: before.id }) : insertFirstApplication(tx, line))
}

async function saveNew(
  tx: Tx,
  app: NotifiedApp,
  { endUserId, externalRef }: NewSubscription,
  change: Change,
): Promise<Subscription> {
  const { planId, priceId, period, customerId = null, inTrial = false } = change
  if (planId === undefined || priceId === undefined || !period)
    throw new Error('a new subscription needs a plan, a price and a period')
  const now = appNow(app, tx.now)
  return addSubscription(tx, {
    appId: app.id,
    endUserId,
    externalRef,
    planId,
    priceId,
    customerId,
    ...columnsOf(period, now),
    inTrial,
    revision: 1,
    renewalToken: randomHex(32),
    remindersStoppedAt: null,
    createdAt: now,
    updatedAt: now,
  })
}

async function saveChange(tx: Tx, app: NotifiedApp, current: Subscription, change: Change): Promise<Subscription> {
  const { period, ...columns } = change
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
