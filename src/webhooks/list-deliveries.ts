import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { listPage, presentPage, type Page, type PageRequest } from '#http/page-of.ts'
import { formatId } from '#shared/ids.ts'
import { formatTimestamp, formatTimestampOrNull } from '#shared/time.ts'
import { listEventRows, type DeliveryStatus, type Event } from './store.ts'

/** An event as operators see it. During an attempt, `next_attempt_at` is the time when that attempt was due. */
export interface DeliveryView {
  readonly id: string
  readonly event_type: string
  readonly external_ref: string | null
  readonly created_at: string
  readonly delivery_status: DeliveryStatus
  readonly attempts: number
  readonly next_attempt_at: string | null
  readonly delivered_at: string | null
  readonly last_error: string | null
}

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
      behind: request.below,
      limit: request.limit,
    })
  return presentPage(await listPage(page, list, ({ createdAt }) => createdAt), presentDelivery)
}

/** Times are real, because a test clock does not move deliveries. */
export function presentDelivery(event: Event): DeliveryView {
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
