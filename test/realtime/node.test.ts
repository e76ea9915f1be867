import { expect } from 'chai'
import { describe, it } from 'mocha'
import { nodeOf } from '#realtime/node.ts'
import { asAppTime, asRealTime } from '#shared/time.ts'

const now = asAppTime(new Date('2026-03-01T10:00:00Z'))
const writtenAt = asRealTime(new Date('2026-03-01T10:00:00.123Z'))
const ended = asAppTime(new Date('2026-03-01T10:00:00Z'))
const running = asAppTime(new Date('2026-03-01T10:00:01Z'))
const web = { purchaseSource: 'web', updatedAt: writtenAt.getTime() } as const

describe('realtime node', () => {
  const rows = [
    ['a running period', 'change', running, { plan: 'premium', expiresAt: running.getTime() }],
    ['a lifetime', 'change', null, { plan: 'premium', expiresAt: null }],
    ['a period that ended, after a change', 'change', ended, { plan: 'premium', expiresAt: ended.getTime() }],
    ['a running period, re-synced', 'resync', running, { plan: 'premium', expiresAt: running.getTime() }],
    ['a lifetime, re-synced', 'resync', null, { plan: 'premium', expiresAt: null }],
    ['a period that ends at this very moment, re-synced', 'resync', ended, { plan: 'free', expiresAt: null }],
  ] as const
  for (const [what, reason, currentPeriodEnd, expected] of rows) {
    it(`${what}: ${expected.plan}, ${expected.expiresAt === null ? 'no expiry' : 'with its end'}`, () => {
      const state = { externalRef: 'user-1', currentPeriodEnd }
      expect(nodeOf(state, reason, now, writtenAt)).to.deep.equal({ ...expected, ...web })
    })
  }
})
