import type { AppRoute } from '#apps/authenticate.ts'
import { advanceTestClock, readTestClock } from './advance-test-clock.ts'

export const testClockRoutes: readonly AppRoute[] = [
  {
    method: 'GET',
    path: '/api/v1/test-clock',
    access: 'hmac',
    run: (ctx, { caller }) => Promise.resolve({ data: readTestClock(ctx, caller.app) }),
  },
  {
    method: 'POST',
    path: '/api/v1/test-clock',
    access: 'hmac',
    run: async (ctx, { caller, body }) => ({ data: await advanceTestClock(ctx, caller.app, body) }),
  },
]
