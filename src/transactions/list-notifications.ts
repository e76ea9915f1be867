import type { Context } from '#context.ts'
import { ListQuery, pageBy, parseCursor, type Page } from '#http/page-of.ts'
import { formatTimestamp } from '#shared/time.ts'
import { validate } from '#shared/validate.ts'
import { listNotedEvents, type ProviderEvent } from './store.ts'

const OUTCOMES = ['refused', 'noted'] as const

/** A page of the provider events that paid nothing and need attention; `appId` null lists those of all apps. */
export async function listNotifications(
  ctx: Context,
  appId: number | null,
  page: unknown,
): Promise<Page<ProviderEvent>> {
  const { limit, cursor } = validate(ListQuery, page)
  const filter = { appId, outcomes: OUTCOMES, below: parseCursor(cursor), limit: limit + 1 }
  return pageBy(await listNotedEvents(ctx.db, filter), limit, ({ receivedAt }) => receivedAt)
}

export function presentNotification(event: ProviderEvent) {
  return {
    id: event.id,
    received_at: formatTimestamp(event.receivedAt),
    provider: event.provider,
    event_type: event.eventType,
    outcome: event.outcome,
    app_id: event.appId,
    transaction_id: event.transactionId,
    note: event.note,
  }
}
