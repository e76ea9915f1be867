import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from '#context.ts'
import { isRetryable } from '#db/database-error.ts'
import { openGuardedClient, type GuardedClient } from '#http/outbound.ts'
import { shuffled } from '#shared/shuffled.ts'
import { MINUTE_MS, SECOND_MS } from '#shared/time.ts'
import { openTurns, type Turns } from '#shared/turns.ts'
import { attemptDelivery, type AttemptResult } from './attempt-delivery.ts'
import { claimDueEvents, giveBackEvents } from './claim-due-events.ts'
import { addTo, difference, emptyTally, finishAttempts, type Tally } from './finish-attempts.ts'
import { openTargets, type Targets } from './read-target.ts'
import { shareClaims } from './share-claims.ts'
import { openSlots, type Slots } from './slots.ts'
import { listAppsWithPending, listDue, type ClaimedEvent, type DueEvent } from './store.ts'

/** How often the sender looks for due events when nobody wakes it. */
const POLL_MS = SECOND_MS
/** How long it waits after the database failed. */
const PAUSE_MS = SECOND_MS
/** Due events of one app that are listed at once: to list costs more than to claim one, so it is done ahead. */
const LIST_SIZE = 256
/** Due events of all apps that are listed in one query. */
const LIST_ROWS = 4096
const REPORT_MS = MINUTE_MS
/** Attempts recorded in one transaction, and how many such transactions run at once. */
const FINISH_SIZE = 50
const FINISHERS = 2
/** How long attempts under way may take to end once the sender stops. */
const STOP_MS = 12 * SECOND_MS

export interface SenderOptions {
  readonly signal: AbortSignal
  /** Ends when nothing is due and nothing under way, rather than with the signal. */
  readonly untilIdle?: boolean
  /** Hands out the function that wakes the sender. */
  readonly onWake?: (wake: () => void) => void
  /** Told once a minute what became of events since. */
  readonly report?: (tally: Tally) => void
  /** In place of a client of its own. */
  readonly client?: GuardedClient
}

interface Sender {
  readonly ctx: Context
  readonly client: GuardedClient
  readonly targets: Targets
  readonly slots: Slots
  readonly bell: Bell
  /** Apps with due events that are not claimed, and those that are listed: an empty list is to be listed again. Whose turn is longest ago comes first. */
  readonly due: Map<number, DueEvent[]>
  /** Claimed events that wait for a slot. */
  readonly ready: Turns<number, ClaimedEvent>
  readonly running: Set<Promise<void>>
  readonly interrupt: AbortController
  readonly finished: AttemptResult[]
  readonly finishers: Set<Promise<void>>
  mustLook: boolean
  lookedAtMs: number
  readonly tally: Tally
}

/**
 * Sends due events until the signal comes, or until none is left. Claims a little ahead of what it sends, keeps every receiver's
 * window full, records attempts in groups; a receiver that is slow or hangs delays its own app only. On the signal it claims no
 * more, gives back what it has not sent and lets what is under way end. Returns what became of the events.
 */
export async function runSender(ctx: Context, options: SenderOptions): Promise<Tally> {
  const { signal, untilIdle = false, onWake, report } = options
  const client = options.client ?? openGuardedClient({ allowInsecure: ctx.config.webhook.allowInsecure })
  const sender = openSender(ctx, client)
  const wake = (): void => {
    sender.mustLook = true
    sender.bell.ring()
  }
  onWake?.(wake)
  signal.addEventListener('abort', wake)
  const reports = report ? openReports(sender.tally, report) : null
  try {
    while (!signal.aborted) {
      reports?.tell()
      if (await (untilIdle ? step(sender) : stepOrPause(sender))) continue
      if (untilIdle && isIdle(sender)) break
      await sender.bell.wait(untilLookMs(sender))
    }
  } finally {
    await stop(sender)
    signal.removeEventListener('abort', wake)
    if (!options.client) client.close()
  }
  return sender.tally
}

function openSender(ctx: Context, client: GuardedClient): Sender {
  return {
    ctx,
    client,
    targets: openTargets(ctx),
    slots: openSlots(() => performance.now()),
    bell: openBell(),
    due: new Map(),
    ready: openTurns(({ appId }) => appId),
    running: new Set(),
    interrupt: new AbortController(),
    finished: [],
    finishers: new Set(),
    mustLook: true,
    lookedAtMs: 0,
    tally: emptyTally(),
  }
}

/** Does what can be done now; false where there is nothing but to wait. */
async function step(sender: Sender): Promise<boolean> {
  beginReady(sender)
  // Before the claim: an app with its first event must not wait until the others have nothing left to claim.
  if (sender.mustLook || untilLookMs(sender) === 0) await look(sender)
  const shares = sharesToClaim(sender)
  if (shares.size === 0) return false
  await claim(sender, shares)
  return true
}

function untilLookMs({ lookedAtMs }: Sender): number {
  return Math.max(0, Math.ceil(lookedAtMs + POLL_MS - performance.now()))
}

/** A sender that is to run for ever outlives a database that is away. */
async function stepOrPause(sender: Sender): Promise<boolean> {
  try {
    return await step(sender)
  } catch (error) {
    sender.ctx.log.error({ error }, 'due webhooks cannot be read')
    sender.mustLook = true
    await delay(PAUSE_MS)
    return false
  }
}

function isIdle({ due, ready, running, finished, finishers }: Sender): boolean {
  return due.size + ready.size + running.size + finished.length + finishers.size === 0
}

/** Asks which apps have due events. */
async function look(sender: Sender): Promise<void> {
  sender.mustLook = false
  sender.lookedAtMs = performance.now()
  const now = sender.ctx.clock.now()
  const pending = await listAppsWithPending(sender.ctx.db)
  const due = pending.filter(({ appId, dueAt }) => dueAt <= now && !sender.due.has(appId))
  for (const { appId } of due.sort((a, b) => a.dueAt.getTime() - b.dueAt.getTime())) sender.due.set(appId, [])
}

function sharesToClaim({ due, ready, slots }: Sender): Map<number, number> {
  const apps = [...due.keys()].map((appId) => ({ appId, held: ready.held(appId), depth: slots.depth(appId) }))
  return shareClaims(apps, ready.size)
}

async function claim(sender: Sender, shares: ReadonlyMap<number, number>): Promise<void> {
  await listMissing(sender, [...shares.keys()])
  const candidates = [...shares].flatMap(([appId, share]) => sender.due.get(appId)?.splice(0, share) ?? [])
  if (candidates.length === 0) return
  const claimed = await claimDueEvents(sender.ctx, candidates)
  sender.ready.add(claimed)
  for (const appId of shares.keys()) {
    const listed = sender.due.get(appId)
    if (!listed) continue
    // Set again, it comes after the apps that wait for their turn.
    sender.due.delete(appId)
    const missed = countOf(candidates, appId) - countOf(claimed, appId)
    // Another daemon claims from the same list: two that go through it in different order are less in each other's way.
    sender.due.set(appId, missed > 0 ? shuffled(listed) : listed)
  }
}

function countOf(events: readonly { readonly appId: number }[], appId: number): number {
  return events.filter((event) => event.appId === appId).length
}

/** Lists due events of the apps of which none are listed; forgets those that have none. */
async function listMissing(sender: Sender, appIds: readonly number[]): Promise<void> {
  const missing = appIds.filter((appId) => sender.due.get(appId)?.length === 0)
  if (missing.length === 0) return
  const size = Math.min(LIST_SIZE, Math.floor(LIST_ROWS / missing.length))
  const listed = await listDue(sender.ctx.db, missing, size, sender.ctx.clock.now())
  for (const appId of missing) {
    const events = listed.filter((event) => event.appId === appId)
    if (events.length > 0) sender.due.set(appId, events)
    else sender.due.delete(appId)
  }
}

/** Begins what is ready and has a place: whenever one becomes free, the next event of the app that has waited longest. */
function beginReady(sender: Sender): void {
  const hasPlace = (appId: number): boolean => sender.slots.room(appId) > 0
  for (let event = sender.ready.take(hasPlace); event; event = sender.ready.take(hasPlace)) begin(sender, event)
}

function begin(sender: Sender, event: ClaimedEvent): void {
  const isLate = event.leaseUntil.getTime() - sender.ctx.clock.now().getTime() < 2 * sender.ctx.config.webhook.timeoutMs
  const work = isLate ? giveBackLate(sender, event) : deliver(sender, event)
  const running = work
    .catch((error: unknown) => {
      sender.ctx.log.error({ error, eventId: event.id }, 'a delivery failed on our side; its lease will run out')
    })
    .finally(() => {
      sender.running.delete(running)
      // The place that became free is taken at once, also while the loop waits for a claim.
      beginReady(sender)
      sender.bell.ring()
    })
  sender.running.add(running)
}

/** An event that waited so long that its lease might end under way is not sent. */
async function giveBackLate(sender: Sender, event: ClaimedEvent): Promise<void> {
  await giveBackEvents(sender.ctx, [event])
  sender.mustLook = true
}

async function deliver(sender: Sender, event: ClaimedEvent): Promise<void> {
  const slot = sender.slots.begin(event.appId)
  let hung = false
  try {
    const { ctx, client, targets, interrupt } = sender
    const result = await attemptDelivery(ctx, client, targets, event, interrupt.signal)
    hung = result.error === 'timeout'
    sender.finished.push(result)
    // A second one only where a whole group waits: groups are what makes it cheap.
    const { finishers, finished } = sender
    if (finishers.size === 0 || (finishers.size < FINISHERS && finished.length >= FINISH_SIZE)) startFinisher(sender)
  } finally {
    sender.slots.end(slot, hung)
  }
}

function startFinisher(sender: Sender): void {
  const finisher = finishAll(sender).finally(() => {
    sender.finishers.delete(finisher)
    sender.bell.ring()
  })
  sender.finishers.add(finisher)
}

/** Records what is finished, in groups: while one is written the next gathers. */
async function finishAll(sender: Sender): Promise<void> {
  while (sender.finished.length > 0) await finishGroup(sender, sender.finished.splice(0, FINISH_SIZE))
}

async function finishGroup(sender: Sender, group: readonly AttemptResult[]): Promise<void> {
  try {
    const written = await finishAttempts(sender.ctx, group)
    addTo(sender.tally, written)
  } catch (error) {
    sender.ctx.log.error({ error, attempts: group.length }, 'delivery attempts cannot be recorded')
    if (isRetryable(error)) {
      await delay(PAUSE_MS)
      sender.finished.push(...stillLeased(sender, group))
    } else if (group.length > 1) {
      // It is the fault of one of them: the others must not wait for it. The lease of that one runs out.
      for (const result of group) await finishGroup(sender, [result])
    }
  }
}

/** An attempt whose lease has run out is forgotten: whoever takes over sends again, and the receiver sees the same event id. */
function stillLeased(sender: Sender, group: readonly AttemptResult[]): AttemptResult[] {
  const now = sender.ctx.clock.now()
  return group.filter(({ event }) => event.leaseUntil > now)
}

async function stop(sender: Sender): Promise<void> {
  const unsent = sender.ready.takeAll()
  try {
    if (unsent.length > 0) await giveBackEvents(sender.ctx, unsent)
  } catch (error) {
    sender.ctx.log.error({ error, events: unsent.length }, 'leases cannot be given back; they will run out')
  }
  const deadline = setTimeout(() => sender.interrupt.abort(), STOP_MS)
  await Promise.all(sender.running)
  clearTimeout(deadline)
  await Promise.all(sender.finishers)
}

/** Tells what was added to a tally, the first time at once and then each minute. */
function openReports(tally: Tally, report: (tally: Tally) => void): { tell(): void } {
  let toldAtMs = -Infinity
  let told = { ...tally }
  return {
    tell() {
      if (performance.now() - toldAtMs < REPORT_MS) return
      toldAtMs = performance.now()
      report(difference(tally, told))
      told = { ...tally }
    },
  }
}

interface Bell {
  ring(): void
  /** Until the bell rings, or did since the last wait; at most `ms`. */
  wait(ms: number): Promise<void>
}

function openBell(): Bell {
  let rang = false
  let answer: (() => void) | null = null
  return {
    ring() {
      rang = true
      answer?.()
    },
    async wait(ms) {
      if (!rang) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms)
          answer = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
      rang = false
      answer = null
    },
  }
}
