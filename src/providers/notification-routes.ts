import Router from '@koa/router'
import type { Context } from '#context.ts'
import type { RequestState } from '#http/errors.ts'
import { receiveCardEvent } from './card/receive-event.ts'
import { notificationBody } from './notification-content.ts'
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
    const body = await notificationBody(http.req, NOTIFICATION_BYTES)
    const status = await receiveCardEvent(ctx, {
      body,
      signature: typeof signature === 'string' ? signature : undefined,
    })
    http.body = { success: true, data: { status } }
  })
  router.post('/api/v1/webhooks/bank-transfer-provider', async (http) => {
    const status = await receivePayosNotification(ctx, await notificationBody(http.req, NOTIFICATION_BYTES))
    http.body = { success: true, data: { status } }
  })
  return router
}
