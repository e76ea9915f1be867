import type { Context } from '#context.ts'
import { formatTimestamp } from '#shared/time.ts'
import { listNotedEvents } from './store.ts'

const OUTCOMES = ['refused', 'noted'] as const
const MOST = 200

/** What providers reported that paid nothing and that somebody should see: the newest 200, of all apps where `appId` is null. */
export async function listNotifications(ctx: Context, appId: number | null) {
  const events = await listNotedEvents(ctx.db, { appId, outcomes: OUTCOMES, limit: MOST })
  return events.map((event) => ({
    id: event.id,
    received_at: formatTimestamp(event.receivedAt),
    provider: event.provider,
    event_type: event.eventType,
    outcome: event.outcome,
    app_id: event.appId,
    transaction_id: event.transactionId,
    note: event.note,
  }))
}
