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
    description: "A sandbox app's own time.",
    method: 'GET',
    path: '/api/v1/test-clock',
    access: 'hmac',
    output: TestClockOutput,
    query: (ctx, { caller }) => Promise.resolve(readTestClock(ctx, caller.app)),
  }),
  // No command: the work is many transactions, and the response is stored after them.
  route.query({
    id: 'advanceTestClock',
    summary: 'Advance the test clock',
    description:
      "Moves a sandbox app's own time forward in one jump, and responds when its reminders and expiry are done. The clock never moves back. `pending` lists reminders that another daemon is still sending, each with `external_ref`, `reminder_day` and `claimed_at`; it is absent if there are none.",
    body: AdvanceClockInput,
    method: 'POST',
    path: '/api/v1/test-clock',
    access: 'hmac',
    output: AdvancedClockOutput,
    query: (ctx, { caller, body }) => advanceTestClock(ctx, caller, caller.app, body),
  }),
]
