import type { Context } from '#context.ts'
import type { PageRequest } from '#db/conditions.ts'
import { ListQuery, listPage, type Page } from '#http/list-page.ts'
import { formatTimestamp } from '#shared/time.ts'
import { validate } from '#shared/validate.ts'
import { listUnappliedEvents, type ProviderEvent } from './store.ts'

/** A page of the provider events that paid nothing and need attention; `appId` null lists those of all apps. */
export async function listNotifications(
  ctx: Context,
  appId: number | null,
  page: unknown,
): Promise<Page<ProviderEvent>> {
  const list = (request: PageRequest) => listUnappliedEvents(ctx.db, { appId, ...request })
  return listPage('notifications', validate(ListQuery, page), list, ({ receivedAt }) => receivedAt)
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
