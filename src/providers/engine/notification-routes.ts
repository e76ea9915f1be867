import Router from '@koa/router'
import type { Context } from '#context.ts'
import type { RequestState } from '#http/errors.ts'
import { notificationBody } from '#providers/notification-content.ts'
import { listProviders } from '#providers/providers.ts'
import { closeOpenSessions } from './reconcile-payments.ts'

/**
 * The endpoints that payment providers call (R210). Answers 400 to what cannot be verified, 200 with the `status` of every decision, and
 * 5xx to errors on our side, so that the provider sends the notification again.
 */
export function notificationRoutes(ctx: Context): Router<RequestState> {
  const router = new Router<RequestState>()
  for (const { notifications } of listProviders()) {
    if (!notifications) continue
    router.post(notifications.path, async (http) => {
      const body = await notificationBody(http.req, notifications.maxBytes)
      const { status, toClose } = await notifications.receive(ctx, { headers: http.req.headers, body })
      if (toClose !== null) void closeOpenSessions(ctx, toClose)
      http.body = { success: true, data: { status } }
    })
  }
  return router
}
