import type { Context } from '#context.ts'
import { randomHex } from '#shared/crypto.ts'
import { AppError, messageOf } from '#shared/errors.ts'
import { mailAlerts, postAlert, type OutgoingAlert } from './deliver.ts'
import { channelsOf } from './messages.ts'
import type { Channel } from './store.ts'

export interface TriedChannel {
  readonly channel: Channel
  readonly sent: boolean
  /** Why not; null if it was sent. */
  readonly error: string | null
}

/** Sends a test message by each channel now. Throws `invalid_request` if no channel is configured. */
export async function sendTestAlert(ctx: Context): Promise<TriedChannel[]> {
  const channels = channelsOf(ctx.config)
  if (channels.length === 0)
    throw new AppError(
      'invalid_request',
      'no alert channel is configured: set BILLING_ALERT_MAIL or BILLING_ALERT_WEBHOOK_URL',
    )
  const now = ctx.clock.now()
  const message: OutgoingAlert = {
    id: `alert_test_${randomHex(8)}`,
    type: 'alert.test',
    kind: 'test',
    subject: 'test',
    text: 'This is a test: alerts of Paygate arrive here.',
    since: now,
  }
  const send = { mail: () => mailAlerts(ctx, [message]), webhook: () => postAlert(ctx, message, now) }
  return Promise.all(
    channels.map((channel) =>
      send[channel]().then(
        () => ({ channel, sent: true, error: null }),
        (error: unknown) => ({ channel, sent: false, error: messageOf(error) }),
      ),
    ),
  )
}
