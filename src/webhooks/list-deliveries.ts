import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import type { PageRequest } from '#db/conditions.ts'
import { ListQuery, listPage, presentPage, type Page } from '#http/list-page.ts'
import { formatId } from '#shared/ids.ts'
import { formatTimestamp, formatTimestampOrNull } from '#shared/time.ts'
import { validate } from '#shared/validate.ts'
import { listEventRows, type DeliveryStatus, type Event } from './store.ts'

/** A page of an app's deliveries, newest first; `status` null lists all. */
export async function listDeliveries(
  ctx: Context,
  app: Pick<App, 'id'>,
  status: DeliveryStatus | null = null,
  page: unknown = { limit: '100' },
): Promise<Page<DeliveryView>> {
  const list = (request: PageRequest) =>
    listEventRows(ctx.db, {
      appId: app.id,
      status,
      eventType: null,
      externalRef: null,
      since: null,
      order: 'desc',
      ...request,
    })
  return presentPage(
    await listPage('deliveries', validate(ListQuery, page), list, ({ createdAt }) => createdAt),
    presentDelivery,
  )
}

/**
 * An event as operators see it. Times are real, because a test clock does not move deliveries. During an attempt, `next_attempt_at` is the
 * time when that attempt was due.
 */
export function presentDelivery(event: Event) {
  return {
    id: formatId('evt', event.id),
    event_type: event.eventType,
    external_ref: event.externalRef,
    created_at: formatTimestamp(event.writtenAt),
    delivery_status: event.deliveryStatus,
    attempts: event.attempts,
    next_attempt_at: formatTimestampOrNull(event.nextAttemptAt),
    delivered_at: formatTimestampOrNull(event.deliveredAt),
    last_error: event.lastError,
  }
}
export type DeliveryView = ReturnType<typeof presentDelivery>
