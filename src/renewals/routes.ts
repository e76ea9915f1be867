import { route, type AppRoute } from '#apps/authenticate.ts'
import {
  AdvanceClockInput,
  AdvancedClockOutput,
  advanceTestClock,
  readTestClock,
  TestClockOutput,
} from './advance-test-clock.ts'

export const testClockRoutes: readonly AppRoute[] = [
  route.query({
    id: 'getTestClock',
    summary: 'Read the test clock',
    description: 'The own time of a sandbox app.',
    method: 'GET',
    path: '/api/v1/test-clock',
    access: 'hmac',
    output: TestClockOutput,
    query: (ctx, { caller }) => Promise.resolve(readTestClock(ctx, caller.app)),
  }),
  // Many transactions: its answer is kept after them.
  route.query({
    id: 'advanceTestClock',
    summary: 'Advance the test clock',
    description:
      'Moves the own time of a sandbox app forward in one jump, runs its reminders and expiry to the end, and answers then. It never moves back.',
    body: AdvanceClockInput,
    method: 'POST',
    path: '/api/v1/test-clock',
    access: 'hmac',
    output: AdvancedClockOutput,
    query: (ctx, { caller, body }) => advanceTestClock(ctx, caller, caller.app, body),
  }),
]
