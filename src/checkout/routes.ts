import { requireSelf, type AppRoute, type Caller } from '#apps/authenticate.ts'
import { commandRoute, type ApiRequest } from '#http/route.ts'
import { createCheckoutSession } from './create-session.ts'

export const checkoutRoutes: readonly AppRoute[] = [
  commandRoute({
    method: 'POST',
    path: '/api/v1/checkout-sessions',
    access: 'any',
    async run(ctx, { caller, body }: ApiRequest<Caller>) {
      const named = (body as { external_ref?: unknown } | null)?.external_ref
      if (typeof named === 'string') requireSelf(caller, named)
      return createCheckoutSession(ctx, caller.app, body, caller.endUser)
    },
    answer: (_ctx, _request, session) => ({ status: 201, data: session }),
  }),
]
