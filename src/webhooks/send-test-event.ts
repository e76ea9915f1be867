import { appNow } from '#apps/app-time.ts'
import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import type { Caller } from '#commands/caller.ts'
import { command, nothing } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import { GuardedClient } from '#http/outbound/guarded-client.ts'
import { AppError } from '#shared/errors.ts'
import { formatId } from '#shared/ids.ts'
import { attemptDelivery, type MadeAttempt } from './attempt-delivery.ts'
import { newLease } from './claim-due-events.ts'
import { envelopeContent } from './emit-event.ts'
import { envelopeOf } from './envelope.ts'
import { finishAttempts } from './finish-attempts.ts'
import { requireWebhook, Targets } from './read-target.ts'
import { leaseNew, type ClaimedEvent } from './claims/store.ts'
import { insertEvent, TEST_EVENT } from './store.ts'

/** Error messages for apps without a usable target. */
const WITHOUT_TARGET = {
  not_configured: ({ id }: App) => `app ${id} no longer has a webhook`,
  secret_unreadable: ({ id }: App) => `the webhook secret of app ${id} cannot be decrypted: run billing-cli doctor`,
}

export interface TestDelivery {
  readonly event_id: string
  readonly delivered: boolean
  readonly http_status: number | null
  /** Null if the receiver acknowledged. */
  readonly error: string | null
  readonly duration_ms: number
  readonly response_head: string | null
}

/**
 * Sends a signed `webhook.test` event to the app's receiver and returns the answer. The event is kept and tried once.
 * Throws `invalid_request` if the app has no webhook, or its secret cannot be decrypted.
 */
export async function sendTestEvent(ctx: Context, caller: Caller, app: App): Promise<TestDelivery> {
  requireWebhook(app)
  const target = await new Targets(ctx).of(app.id)
  if (target.kind === 'none') throw new AppError('invalid_request', WITHOUT_TARGET[target.error](app))
  const event = await perform(ctx, caller, writeTestEvent, undefined, { app })
  const client = new GuardedClient({ allowInsecure: ctx.config.webhook.allowInsecure })
  try {
    const result = await attemptDelivery(ctx, client, target.address, event)
    await finishAttempts(ctx, [result])
    return presentTest(result)
  } finally {
    client.close()
  }
}

/** Writes the event with a lease, so that the daemon's sender does not send it too. */
const writeTestEvent = command({
  name: 'webhook.test',
  input: nothing,
  async run(tx, _input, { app }: { readonly app: App }): Promise<ClaimedEvent> {
    const createdAt = appNow(app, tx.now)
    const content = envelopeContent(app, TEST_EVENT, {}, createdAt)
    const subject = { appId: app.id, eventType: TEST_EVENT, externalRef: null, transactionId: null }
    const id = await insertEvent(tx, {
      ...subject,
      body: content,
      deliveryStatus: 'pending',
      createdAt,
      writtenAt: tx.now,
      retries: 0,
    })
    const lease = newLease(tx.ctx)
    await leaseNew(tx, id, lease)
    await tx.audit({ appId: app.id, subject: formatId('evt', id) })
    const claim = { attempt: 1, retriesLeft: 0, lease: lease.token }
    const body = envelopeOf({ id, body: content, carriesId: true })
    return { id, appId: app.id, eventType: TEST_EVENT, body, ...claim }
  },
})

function presentTest(attempt: MadeAttempt): TestDelivery {
  return {
    event_id: formatId('evt', attempt.event.id),
    delivered: attempt.error === null,
    http_status: attempt.httpStatus,
    error: attempt.error,
    duration_ms: attempt.durationMs,
    response_head: attempt.responseHead,
  }
}
