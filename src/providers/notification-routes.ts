import Router, { type RouterContext } from '@koa/router'
import type { Context } from '#context.ts'
import { readBody } from '#http/body.ts'
import type { RequestState } from '#http/errors.ts'
import { AppError } from '#shared/errors.ts'
import { receiveCardEvent } from './card/receive-event.ts'
import { unverified } from './notification-content.ts'
import { receivePayosNotification } from './payos/receive-notification.ts'

const NOTIFICATION_BYTES = 256 * 1024

/**
 * The endpoints that payment providers call (specification 4, contract 4). What cannot be verified answers 400, every decision 200
 * with its `status`, and a fault of our own 5xx, so that the provider tells it again.
 */
export function notificationRoutes(ctx: Context): Router<RequestState> {
  const router = new Router<RequestState>()
  router.post('/api/v1/webhooks/card-provider', async (http) => {
    const signature = http.req.headers['stripe-signature']
    const body = await notificationBody(http)
    const status = await receiveCardEvent(ctx, {
      body,
      signature: typeof signature === 'string' ? signature : undefined,
    })
    http.body = { success: true, data: { status } }
  })
  router.post('/api/v1/webhooks/bank-transfer-provider', async (http) => {
    const status = await receivePayosNotification(ctx, await notificationBody(http))
    http.body = { success: true, data: { status } }
  })
  return router
}

/** The exact bytes. One that is too long is a transport problem like any other: 400 (specification 7), and the connection ends. */
async function notificationBody(http: RouterContext<RequestState>): Promise<Buffer> {
  try {
    return await readBody(http.req, NOTIFICATION_BYTES)
  } catch (thrown) {
    if (!(thrown instanceof AppError) || thrown.code !== 'payload_too_large') throw thrown
    http.set(thrown.headers)
    throw unverified()
  }
}
