import { expect } from 'chai'
import { describe, it } from 'mocha'
import { HOUR_MS, SECOND_MS } from '#shared/time.ts'
import { clockSkew } from './clock-skew.ts'

describe('trial: two senders whose clocks differ', () => {
  for (const [amount, skewMs] of [
    ['a second', SECOND_MS],
    ['five hours', 5 * HOUR_MS],
  ] as const) {
    it(`by ${amount}: no lease is taken early, each webhook and each mail is sent once`, async () => {
      expect(await clockSkew({ skewMs, events: 20 })).to.include({ repeated: 0, mails: 20 })
    })
  }
})
