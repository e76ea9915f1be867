import type { AppRoute } from '#apps/authenticate.ts'
import { requireSelf } from '#apps/authenticate.ts'
import { createCheckoutSession } from './create-session.ts'

export const checkoutRoutes: readonly AppRoute[] = [
  {
    method: 'POST',
    path: '/api/v1/checkout-sessions',
    access: 'any',
    async run(ctx, { caller, body }) {
      const named = (body as { external_ref?: unknown } | null)?.external_ref
      if (typeof named === 'string') requireSelf(caller, named)
      return { status: 201, data: await createCheckoutSession(ctx, caller.app, body) }
    },
  },
]
