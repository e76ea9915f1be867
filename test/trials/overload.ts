import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { request } from 'undici'
import { SECOND_MS, systemClock } from '#shared/time.ts'
import { signed } from '../../bench/shop.ts'
import { startWorker } from '../../bench/worker.ts'
import type { LoadOrder, LoadRequest, LoadResult } from '../../bench/workers/load.ts'
import { requireCleanLedger } from '../support/clean-ledger.ts'
import { presentContext, type TestContext } from '../support/context.ts'
import { startDaemonProcess, type DaemonProcess } from '../support/daemon-process.ts'
import { aCheckout, aCustomer, anApp, aPlan, priceId, tokenOf, type TestApp } from '../support/factories.ts'
import { Receiver } from '../support/receiver.ts'
import { scratchFolder } from '../support/scratch.ts'
import { startStripePeer, type PeerSession, type StripePeer } from '../support/stripe-peer.ts'
import { until } from '../support/until.ts'
import { aCardSeller, CARD, completionOf } from './card-rig.ts'
import type { OfferOrder, OfferResult } from './open-loop.ts'
import { aReminderFallsDue, chooseAccepted } from './shop.ts'

export interface OverloadOptions {
  /** The minimum of checkouts offered per second. */
  readonly perSecond: number
  /** The multiple of the capacity to offer, if that is more. */
  readonly times: number
  /** The duration of the overload. */
  readonly seconds: number
  /** The duration of the capacity measurement, half before and half after the overload. */
  readonly capacitySeconds: number
  /** Card payments reported during the overload, evenly. */
  readonly notifications: number
  /** Mails that become due when the overload begins. */
  readonly reminders: number
  /** The limit of the 99th percentile of accepted requests. */
  readonly mostP99Ms: number
  /** The share of the capacity that must remain. */
  readonly leastShare: number
}

export interface OverloadFigures {
  /** Checkouts per second over 32 connections that wait for each answer. */
  readonly capacity: number
  /** Checkouts offered per second. */
  readonly offered: number
  /** Checkouts opened per second. */
  readonly goodput: number
  /** As a share of the capacity. */
  readonly goodputShare: number
  /** Measured since the request was due, like the other times. */
  readonly acceptedP50Ms: number
  readonly acceptedP99Ms: number
  readonly refused: number
  readonly refusedP99Ms: number
  readonly notifications: number
  readonly slowestNotificationMs: number
  readonly webhooks: number
  /** Measured since the notification was due. */
  readonly slowestWebhookMs: number
  readonly reminders: number
  /** Sent before the overload ended. */
  readonly remindersMeanwhile: number
}

const CONNECTIONS = 32
const BUYERS = 1000

/**
 * Offers a daemon more checkouts per second than it can open, each at its due time, while card payments are reported, webhooks are sent
 * and reminders become due. Throws if an answer is neither 201 nor 429, if a notification is not accepted at once, if a
 * webhook or a mail never arrives, if accepted requests take too long or too few are accepted, and if the ledger has a discrepancy.
 */
export async function overload(options: OverloadOptions): Promise<OverloadFigures> {
  const { seconds, notifications, reminders } = options
  const home = scratchFolder('home')
  const stripe = await startStripePeer(systemClock, [CARD.secretKey])
  const receiver = await Receiver.start()
  const arrivedMs = noteArrivals(receiver)
  const settings = { BILLING_STRIPE_API_BASE: stripe.base, BILLING_HOME: home, BILLING_SWEEP_SECONDS: '5' }
  const ctx = presentContext(settings)
  const load = startWorker<LoadOrder, LoadResult>(join('workers', 'load.ts'))
  const offer = startWorker<OfferOrder, OfferResult>(join('..', 'test', 'trials', 'open-loop.ts'))
  const daemon = await startDaemonProcess(settings)
  try {
    const sessions = await openSessions(ctx, stripe, receiver, daemon, notifications)
    const app = await anApp(ctx)
    const price = priceId(await aPlan(ctx, app))
    const requests = await checkoutsOf(ctx, app, price)
    const measured = { isRepeated: true, connections: CONNECTIONS, expectedStatus: 201 }
    const measure = async (): Promise<number> =>
      (await load.ask({ ...measured, requests, seconds: options.capacitySeconds / 2, origin: daemon.url })).perSecond
    const before = await measure()
    const perSecond = Math.max(options.perSecond, Math.ceil(options.times * before))
    const [result, reported] = await Promise.all([
      offer.ask({ requests, perSecond, seconds, origin: daemon.url }),
      evenly(notifications, seconds, (number) => report(daemon, stripe, sessions[number]!)),
      evenly(reminders, 1, (number) => aReminderFallsDue(ctx, { app, price }, `due-${number}`)),
    ])
    const folder = join(home, 'mail')
    const sent = (): number => (existsSync(folder) ? readdirSync(folder).length : 0)
    const remindersMeanwhile = sent()
    const after = await measure()
    const capacity = (before + after) / 2
    await until(() => reported.every(({ externalRef }) => arrivedMs.has(externalRef)))
    const webhooks = reported.map(({ externalRef, atMs }) => arrivedMs.get(externalRef)! - atMs)
    await until(() => sent() === reminders)
    checkAnswers(result)
    await requireCleanLedger(ctx, 'after the overload')
    const goodput = result.acceptedMs.length / seconds
    const figures = {
      capacity: Math.round(capacity),
      offered: Math.round(result.offered / seconds),
      goodput: Math.round(goodput),
      goodputShare: Math.round((goodput / capacity) * 100) / 100,
      acceptedP50Ms: quantile(result.acceptedMs, 0.5),
      acceptedP99Ms: quantile(result.acceptedMs, 0.99),
      refused: result.refusedMs.length,
      refusedP99Ms: quantile(result.refusedMs, 0.99),
      notifications,
      slowestNotificationMs: Math.round(Math.max(...reported.map(({ tookMs }) => tookMs))),
      webhooks: webhooks.length,
      slowestWebhookMs: Math.round(Math.max(...webhooks)),
      reminders,
      remindersMeanwhile,
    }
    if (figures.goodputShare < options.leastShare || figures.acceptedP99Ms > options.mostP99Ms)
      throw new Error(`too few accepted, or too late: ${JSON.stringify(figures)}`)
    return figures
  } finally {
    await Promise.all([load.stop(), offer.stop()])
    await daemon.stop()
    await receiver.stop()
    await stripe.stop()
  }
}

/** Card payments made at the provider but not reported yet. */
async function openSessions(
  ctx: TestContext,
  stripe: StripePeer,
  receiver: Receiver,
  daemon: DaemonProcess,
  count: number,
): Promise<PeerSession[]> {
  const app = await aCardSeller(ctx, { webhookUrl: receiver.url })
  const price_id = priceId(await aPlan(ctx, app))
  for (let number = 0; number < count; number += 1) {
    const checkout = await aCheckout(ctx, app, { price_id, external_ref: `payer-${number}` })
    await chooseAccepted(daemon, tokenOf(checkout), 'card')
    stripe.pay(stripe.sessions.at(-1)!)
  }
  return stripe.sessions
}

async function checkoutsOf(ctx: TestContext, app: TestApp, price: string): Promise<LoadRequest[]> {
  const customer = `cus_${(await aCustomer(ctx, app)).id}`
  return Array.from({ length: BUYERS }, (_, number) =>
    signed({ ctx, app, price, customer }, 'POST', '/api/v1/checkout-sessions', {
      external_ref: `buyer-${number}`,
      mode: 'subscription',
      price_id: price,
      customer_id: customer,
      success_url: 'https://shop.example/ok',
      cancel_url: 'https://shop.example/no',
    }),
  )
}

/** Does the work `count` times, evenly within the given seconds, however long earlier ones take. */
async function evenly<T>(count: number, seconds: number, work: (number: number) => Promise<T>): Promise<T[]> {
  const startedMs = performance.now()
  const begun: Promise<T>[] = []
  for (let number = 0; number < count; number += 1) {
    await delay(Math.max(0, startedMs + (number / count) * seconds * SECOND_MS - performance.now()))
    const one = work(number)
    one.catch(() => undefined)
    begun.push(one)
  }
  return Promise.all(begun)
}

interface Reported {
  readonly externalRef: string
  readonly atMs: number
  readonly tookMs: number
}

async function report(daemon: DaemonProcess, stripe: StripePeer, session: PeerSession): Promise<Reported> {
  const atMs = performance.now()
  const { body, headers } = completionOf(session)
  const answer = await request(`${daemon.url}/api/v1/webhooks/card-provider`, { method: 'POST', headers, body })
  const text = await answer.body.text()
  if (answer.statusCode !== 200 || !text.includes('processed'))
    throw new Error(`a card notification was answered ${answer.statusCode} ${text}`)
  return { externalRef: `payer-${stripe.sessions.indexOf(session)}`, atMs, tookMs: performance.now() - atMs }
}

/** When the first webhook about each end user arrived. */
function noteArrivals(receiver: Receiver): ReadonlyMap<string, number> {
  const arrivedMs = new Map<string, number>()
  receiver.answer = (response, { body }) => {
    const ref: string = body.data.external_ref
    if (!arrivedMs.has(ref)) arrivedMs.set(ref, performance.now())
    response.writeHead(200).end()
  }
  return arrivedMs
}

function checkAnswers({ answers, withoutRetryAfter }: OfferResult): void {
  const others = Object.keys(answers).filter((status) => status !== '201' && status !== '429')
  if (others.length > 0) throw new Error(`unexpected answers: ${JSON.stringify(answers)}`)
  if (withoutRetryAfter > 0) throw new Error(`${withoutRetryAfter} answers had no Retry-After`)
}

/** In whole milliseconds; 0 for an empty list. */
function quantile(ascending: readonly number[], part: number): number {
  return Math.round(ascending[Math.floor(ascending.length * part)] ?? 0)
}
