import type { Context } from '#context.ts'
import type { GuardedClient } from '#http/outbound/guarded-client.ts'
import { unixSeconds, type RealTime } from '#shared/time.ts'
import type { TargetError, WebhookAddress } from './read-target.ts'
import { webhookHeaders } from './signature.ts'
import type { ClaimedEvent } from './claims/store.ts'

/** The part of an event that an attempt needs. */
export type SentEvent = Pick<ClaimedEvent, 'id' | 'appId' | 'eventType' | 'attempt' | 'body'>

/** An attempt that was made. `error` is `http_500`, `timeout`, `blocked_address`, …; null if the receiver acknowledged. */
export interface MadeAttempt<Sent extends SentEvent = ClaimedEvent> {
  readonly kind: 'made'
  readonly event: Sent
  readonly startedAt: RealTime
  readonly durationMs: number
  readonly httpStatus: number | null
  readonly error: string | null
  readonly responseHead: string | null
}

/** An attempt that was not made, because its app has no usable target. */
export interface SkippedAttempt {
  readonly kind: 'skipped'
  readonly event: ClaimedEvent
  readonly error: TargetError
}

/** The result for a claimed event. */
export type AttemptResult = MadeAttempt | SkippedAttempt

/** Sends an event once, with a fresh signature. Any 2xx acknowledges; everything else is a failure. */
export async function attemptDelivery<Sent extends SentEvent>(
  ctx: Context,
  client: GuardedClient,
  { url, keys }: WebhookAddress,
  event: Sent,
): Promise<MadeAttempt<Sent>> {
  const startedAt = ctx.clock.now()
  const { id: eventId, eventType, attempt, body, appId } = event
  const { httpStatus, responseHead, durationMs, failure } = await client.post({
    ownerId: appId,
    url,
    headers: webhookHeaders(keys, { eventId, eventType, attempt, timestamp: unixSeconds(startedAt), body }),
    body,
    deadlineMs: ctx.config.webhook.timeoutMs,
  })
  const error = failure ?? errorOfStatus(httpStatus)
  return { kind: 'made', event, startedAt, durationMs, httpStatus, error, responseHead }
}

function errorOfStatus(status: number | null): string | null {
  return status !== null && status >= 200 && status < 300 ? null : `http_${status ?? 'none'}`
}
