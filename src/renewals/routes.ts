import { z } from 'zod'
import { route, type AppRoute } from '#apps/authenticate.ts'
import { timestamp } from '#shared/validate.ts'
import { AdvancedClockOutput, advanceTestClock, readTestClock } from './advance-test-clock.ts'

export const testClockRoutes: readonly AppRoute[] = [
  route.query({
    method: 'GET',
    path: '/api/v1/test-clock',
    access: 'hmac',
    output: z.strictObject({ now: timestamp }),
    query: (ctx, { caller }) => Promise.resolve(readTestClock(ctx, caller.app)),
  }),
  // Many transactions: its answer is kept after them.
  route.query({
    method: 'POST',
    path: '/api/v1/test-clock',
    access: 'hmac',
    output: AdvancedClockOutput,
    query: (ctx, { caller, body }) => advanceTestClock(ctx, caller, caller.app, body),
  }),
]
