import { requireSelf, route, type AppRoute } from '#apps/authenticate.ts'
import { createCheckoutSession, CreatedSessionOutput } from './create-session.ts'

export const checkoutRoutes: readonly AppRoute[] = [
  route.command({
    method: 'POST',
    path: '/api/v1/checkout-sessions',
    access: 'any',
    status: 201,
    command: createCheckoutSession,
    scope({ caller, body }) {
      const named = (body as { external_ref?: unknown } | null)?.external_ref
      if (typeof named === 'string') requireSelf(caller, named)
      return { app: caller.app, endUser: caller.endUser }
    },
    output: CreatedSessionOutput,
    present: (session) => session,
  }),
]
