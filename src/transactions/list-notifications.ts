import type { Context } from '#context.ts'
import { listPage, type Page, type PageRequest } from '#http/page-of.ts'
import { formatTimestamp } from '#shared/time.ts'
import { listUnappliedEvents, type ProviderEvent } from './store.ts'

/** A page of the provider events that paid nothing and need attention; `appId` null lists those of all apps. */
export async function listNotifications(
  ctx: Context,
  appId: number | null,
  page: unknown,
): Promise<Page<ProviderEvent>> {
  const list = (request: PageRequest) => listUnappliedEvents(ctx.db, { appId, ...request })
  return listPage(page, list, ({ receivedAt }) => receivedAt)
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
