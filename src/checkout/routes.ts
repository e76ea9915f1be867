import { requireSelf, route, type AppRoute } from '#apps/authenticate.ts'
import { createCheckoutSession } from './create-session.ts'
import { refuseClientMetadata } from './refuse-client-choices.ts'
import { CreatedSessionOutput } from './session-fields.ts'

export const checkoutRoutes: readonly AppRoute[] = [
  route.command({
    id: 'createCheckoutSession',
    summary: 'Create a checkout session',
    description:
      'Opens a hosted checkout. Mode `subscription` sells a price of a plan: the first payment starts the subscription; a payment for the current plan extends it. Mode `payment` is a one-time purchase. A field of the other mode is an error.',
    errors: ['price_not_found', 'payment_method_unavailable', 'promotion_not_valid', 'already_lifetime'],
    method: 'POST',
    path: '/api/v1/checkout-sessions',
    access: 'any',
    status: 201,
    command: createCheckoutSession,
    scope({ caller, body }) {
      const named = (body as { external_ref?: unknown } | null)?.external_ref
      if (typeof named === 'string') requireSelf(caller, named)
      if (caller.endUser !== null) refuseClientMetadata(body)
      return { app: caller.app, endUser: caller.endUser }
    },
    output: CreatedSessionOutput,
    present: (session) => session,
  }),
]
