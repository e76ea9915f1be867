import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { messageOf } from '#shared/errors.ts'
import { DAY_MS, MINUTE_MS, SECOND_MS, addMs, doublingPauseMs } from '#shared/time.ts'
import { truncate } from '#shared/truncate.ts'
import type { OutgoingAlert } from './deliver.ts'
import { channelsOf } from './messages.ts'
import { claimMessage, listDueMessages, markNotified, updateMessage, type AlertMessage, type Channel } from './store.ts'

const AT_ONCE = 100
/** A claim that was not ended within this time belongs to a daemon that died. */
const LEASE_MS = 3 * MINUTE_MS
const FIRST_PAUSE_MS = 30 * SECOND_MS
const MAX_PAUSE_MS = 10 * MINUTE_MS
const GIVEN_UP_MS = 3 * DAY_MS

/**
 * Sends the due messages by all channels, independently of each other: a dead mail server does not stop the webhook. Returns how many were
 * sent.
 */
export async function sendMessages(ctx: Context): Promise<number> {
  const sent = await Promise.all(channelsOf(ctx.config).map((channel) => sendBy(ctx, channel)))
  return sent.reduce((sum, count) => sum + count, 0)
}

async function sendBy(ctx: Context, channel: Channel): Promise<number> {
  const due = await listDueMessages(ctx.db, channel, await databaseNow(ctx, ctx.db), AT_ONCE)
  // Many alerts at once become one mail.
  return channel === 'mail' ? sendTogether(ctx, due) : sendInOrder(ctx, due)
}

async function sendTogether(ctx: Context, due: readonly AlertMessage[]): Promise<number> {
  const messages: AlertMessage[] = []
  for (const message of due) {
    const claimed = await claim(ctx, message)
    if (!claimed) break
    messages.push(claimed)
  }
  if (messages.length === 0) return 0
  const error = await errorOf(async () => (await loadDelivery()).mailAlerts(ctx, messages.map(outgoingOf)))
  for (const message of messages) await end(ctx, message, error)
  return error === null ? messages.length : 0
}

/** After one that fails, the others wait, so that the opening of an alert arrives before its closing. */
async function sendInOrder(ctx: Context, due: readonly AlertMessage[]): Promise<number> {
  let failure: string | null = null
  let sent = 0
  for (const message of due) {
    // Each just before it is sent: a slow receiver may take longer for all than a claim lasts.
    const claimed = await claim(ctx, message)
    if (!claimed) break
    failure ??= await errorOf(async () => (await loadDelivery()).postAlert(ctx, outgoingOf(claimed), ctx.clock.now()))
    await end(ctx, claimed, failure)
    if (failure === null) sent += 1
  }
  return sent
}

/** Null if another daemon claimed it: that one sends what follows, too, so that each message comes after those before it. */
async function claim(ctx: Context, message: AlertMessage): Promise<AlertMessage | null> {
  const until = addMs(await databaseNow(ctx, ctx.db), LEASE_MS)
  return (await claimMessage(ctx.db, message, until)) ? { ...message, attempts: message.attempts + 1 } : null
}

/** Loaded for the first message, so that an installation without problems does not keep the mail and HTTP clients in memory. */
const loadDelivery = () => import('./deliver.ts')

function outgoingOf({ id, type, kind, subject, text, since }: AlertMessage): OutgoingAlert {
  return { id: `alert_${id}`, type, kind, subject, text, since }
}

async function errorOf(send: () => Promise<void>): Promise<string | null> {
  try {
    await send()
    return null
  } catch (error) {
    return truncate(messageOf(error), 500)
  }
}

async function end(ctx: Context, message: AlertMessage, error: string | null): Promise<void> {
  const { id, alertId, channel, attempts, createdAt } = message
  const now = await databaseNow(ctx, ctx.db)
  if (error === null) {
    await updateMessage(ctx.db, id, { nextTryAt: null, sentAt: now, lastError: null })
    if (alertId !== null) await markNotified(ctx.db, alertId, now)
    return
  }
  ctx.log.warn({ channel, message: id, error }, 'an alert could not be sent')
  const pause = doublingPauseMs(FIRST_PAUSE_MS, attempts - 1, MAX_PAUSE_MS)
  const isGivenUp = createdAt < addMs(now, -GIVEN_UP_MS)
  await updateMessage(ctx.db, id, { nextTryAt: isGivenUp ? null : addMs(now, pause), sentAt: null, lastError: error })
}
