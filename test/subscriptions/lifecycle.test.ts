import { expect } from 'chai'
import { describe, it } from 'mocha'
import { effectiveStatus, effectOfPayment, type SubscriptionState, type Terms } from '#subscriptions/lifecycle.ts'
import { asAppTime } from '#shared/time.ts'

const utc = (text: string) => asAppTime(new Date(`${text.replace(' ', 'T')}:00Z`))
const monthly: Terms = { planId: 1, interval: { unit: 'month', count: 1 } }
const other: Terms = { planId: 2, interval: { unit: 'month', count: 1 } }
const lifetime: Terms = { planId: 1, interval: { unit: 'lifetime', count: 1 } }
const until = (end: string | null, anchorDay = 31): SubscriptionState => ({
  planId: 1,
  periodStart: utc('2026-01-31 10:00'),
  currentPeriodEnd: end === null ? null : utc(end),
  anchorDay: end === null ? null : anchorDay,
})
const effect = (current: SubscriptionState | null, terms: Terms, paidAt: string) => {
  const result = effectOfPayment(current, terms, utc(paidAt))
  return result.kind === 'refused'
    ? result.reason
    : `${result.kind} ${result.period.end?.toISOString().slice(0, 16).replace('T', ' ') ?? 'for ever'}`
}

describe('what a payment does (specification 3)', () => {
  const rows: [string, SubscriptionState | null, Terms, string, string][] = [
    ['the first payment starts at payment time', null, monthly, '2026-01-31 10:00', 'started 2026-02-28 10:00'],
    [
      'a payment while valid extends from the current end, to the anchor day',
      until('2026-02-28 10:00'),
      monthly,
      '2026-02-20 09:00',
      'extended 2026-03-31 10:00',
    ],
    [
      'a payment in the last second before the end extends',
      until('2026-02-28 10:00'),
      monthly,
      '2026-02-28 09:59',
      'extended 2026-03-31 10:00',
    ],
    [
      'a payment at the very end starts anew',
      until('2026-02-28 10:00'),
      monthly,
      '2026-02-28 10:00',
      'restarted 2026-03-28 10:00',
    ],
    [
      'a payment within the grace window starts at payment time',
      until('2026-02-28 10:00'),
      monthly,
      '2026-03-03 12:00',
      'restarted 2026-04-03 12:00',
    ],
    [
      'a payment after the grace window starts at payment time',
      until('2026-02-28 10:00'),
      monthly,
      '2026-05-31 12:00',
      'restarted 2026-06-30 12:00',
    ],
    [
      'another plan while valid starts at payment time, without proration',
      until('2026-12-31 10:00'),
      other,
      '2026-02-20 09:00',
      'restarted 2026-03-20 09:00',
    ],
    ['a lifetime price never ends', until('2026-02-28 10:00'), lifetime, '2026-02-20 09:00', 'extended for ever'],
    ['a lifetime price bought first never ends', null, lifetime, '2026-02-20 09:00', 'started for ever'],
    ['a lifetime owner is not charged into anything', until(null), monthly, '2026-02-20 09:00', 'already_lifetime'],
    ['a period beyond the calendar is refused', until('9999-12-31 10:00'), monthly, '2026-02-20 09:00', 'period_guard'],
  ]
  for (const [title, current, terms, paidAt, expected] of rows) {
    it(title, () => expect(effect(current, terms, paidAt)).to.equal(expected))
  }

  it('a subscription is expired from the very moment of its end', () => {
    const end = utc('2026-02-28 10:00')
    expect(effectiveStatus({ currentPeriodEnd: end }, asAppTime(new Date(end.getTime() - 1)))).to.equal('active')
    expect(effectiveStatus({ currentPeriodEnd: end }, end)).to.equal('expired')
    expect(effectiveStatus({ currentPeriodEnd: null }, end)).to.equal('active')
  })
})
