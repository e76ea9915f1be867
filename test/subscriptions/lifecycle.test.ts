import { expect } from 'chai'
import { describe, it } from 'mocha'
import {
  decide,
  planChoiceAfter,
  effectiveStatus,
  purposeOf,
  type ChoiceLine,
  type PlanChoice,
  type Quote,
  type SubscriptionState,
} from '#subscriptions/lifecycle.ts'
import { asAppTime } from '#shared/time.ts'

const utc = (text: string) => asAppTime(new Date(`${text.replace(' ', 'T')}:00Z`))
const MONTH = { unit: 'month', count: 1 } as const
const quoted = (changes: Partial<Quote> = {}): Quote => ({
  purpose: 'start',
  isByRenewalLink: false,
  planId: 1,
  priceId: 11,
  interval: MONTH,
  openedAt: utc('2026-01-31 10:00'),
  isTrialUsed: false,
  isAccepted: false,
  ...changes,
})
const monthly = quoted({ purpose: 'extend' })
const other = quoted({ purpose: 'change', planId: 2, priceId: 21, openedAt: utc('2026-02-20 09:00') })
const lifetime = quoted({ purpose: 'extend', priceId: 12, interval: { unit: 'lifetime', count: 1 } })
const until = (end: string | null, anchorDay = 31): SubscriptionState => ({
  planId: 1,
  priceId: 11,
  periodStart: utc('2026-01-31 10:00'),
  currentPeriodEnd: end === null ? null : utc(end),
  anchorDay: end === null ? null : anchorDay,
})
const bought = (openedAt: string, paidAt = openedAt): PlanChoice => ({
  planId: 1,
  isBought: true,
  openedAt: utc(openedAt),
  paidAt: utc(paidAt),
  pricedAt: utc(openedAt),
})
const FIRST = bought('2026-01-31 10:00')
const switched = (at: string): PlanChoice => ({ ...bought(at), isBought: false })
const effect = (current: SubscriptionState | null, quote: Quote, paidAt: string, last = FIRST) => {
  const result = decide(current, current && last, quote, utc(paidAt))
  return result.kind === 'refused'
    ? result.reason
    : `${result.kind} ${result.period.end?.toISOString().slice(0, 16).replace('T', ' ') ?? 'permanently'}`
}

describe('the effect of a payment', () => {
  const rows: [string, SubscriptionState | null, Quote, string, string][] = [
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
      'a payment at the very end starts a new period',
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
    ['a lifetime price never ends', until('2026-02-28 10:00'), lifetime, '2026-02-20 09:00', 'extended permanently'],
    ['a lifetime price bought first never ends', null, lifetime, '2026-02-20 09:00', 'started permanently'],
    ['a payment of a lifetime owner is not applied', until(null), monthly, '2026-02-20 09:00', 'already_lifetime'],
    [
      'a period beyond the supported dates is refused',
      until('9999-12-31 10:00'),
      monthly,
      '2026-02-20 09:00',
      'period_guard',
    ],
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

  it('the purpose of a checkout: start, extend, change, trial', () => {
    const now = utc('2026-02-01 10:00')
    const ends = (end: string | null) => until(end)
    expect(purposeOf(null, 1, false, now)).to.equal('start')
    expect(purposeOf(ends('2026-02-01 10:00'), 1, false, now)).to.equal('start')
    expect(purposeOf(ends('2026-02-28 10:00'), 1, false, now)).to.equal('extend')
    expect(purposeOf(ends('2026-02-28 10:00'), 2, false, now)).to.equal('change')
    expect(purposeOf(ends('2026-02-01 10:00'), 2, true, now)).to.equal('trial')
  })
})

describe('paid time is never silently shortened', () => {
  /** Plan 2 until the end of the year, decided at 10:00 on 1 March. */
  const year: SubscriptionState = { ...until('2027-03-01 10:00', 1), planId: 2, priceId: 21 }
  const change = (openedAt: string) => quoted({ purpose: 'change', openedAt: utc(openedAt) })
  const L = bought('2026-03-01 10:00', '2026-03-01 11:00')

  describe('a payment for another plan while valid', () => {
    const rows: [string, Quote, string, string][] = [
      [
        'opened and paid no earlier than the latest plan choice: applies',
        change('2026-03-01 10:00'),
        '2026-03-01 11:00',
        'restarted 2026-04-01 11:00',
      ],
      ['opened earlier: superseded', change('2026-03-01 09:59'), '2026-03-05 10:00', 'superseded'],
      ['paid earlier: superseded', change('2026-03-01 10:30'), '2026-03-01 10:58', 'superseded'],
      [
        'paid a minute earlier: provider times this close are equal',
        change('2026-03-01 10:30'),
        '2026-03-01 10:59',
        'restarted 2026-04-01 10:59',
      ],
      [
        'opened with purpose start, earlier: superseded',
        { ...change('2026-02-01 10:00'), purpose: 'start' },
        '2026-03-05 10:00',
        'superseded',
      ],
      [
        'paid after the end: applies, whenever it was opened',
        change('2026-02-01 10:00'),
        '2027-03-01 10:00',
        'restarted 2027-04-01 10:00',
      ],
    ]
    for (const [title, quote, paidAt, expected] of rows) {
      it(title, () => expect(effect(year, quote, paidAt, L)).to.equal(expected))
    }

    it('a payment with purpose start for the plan that has become valid extends it', () => {
      const start = quoted({ planId: 2, priceId: 21, openedAt: utc('2026-02-01 10:00') })
      expect(effect(year, start, '2026-03-05 10:00', L)).to.equal('extended 2027-04-01 10:00')
    })

    it('the same times apply against a plan switch, an import and an operator’s end, which count as opened and paid at their time', () => {
      expect(effect(year, change('2026-03-01 09:59'), '2026-03-02 10:00', switched('2026-03-01 10:00'))).to.equal(
        'superseded',
      )
      expect(effect(year, change('2026-03-01 10:01'), '2026-03-02 10:00', switched('2026-03-01 10:00'))).to.equal(
        'restarted 2026-04-02 10:00',
      )
    })
  })

  describe('a payment that was opened to extend', () => {
    const renewal = quoted({ purpose: 'extend', isByRenewalLink: true, openedAt: utc('2026-02-25 10:00') })
    const after = (current: SubscriptionState, quote: Quote, paidAt: string, last: PlanChoice) => {
      const result = decide(current, last, quote, utc(paidAt))
      return result.kind === 'refused' ? result.reason : [result.kind, result.planId, result.priceId]
    }

    it('extends the present period by the interval sold after a plan switch, and the switch stays', () => {
      expect(effect(year, renewal, '2026-03-05 10:00', switched('2026-03-01 10:00'))).to.equal(
        'extended 2027-04-01 10:00',
      )
      expect(after(year, renewal, '2026-03-05 10:00', switched('2026-03-01 10:00'))).to.deep.equal(['extended', 2, 21])
    })

    it('is superseded if the present plan was bought since', () => {
      expect(effect(year, renewal, '2026-03-05 10:00', L)).to.equal('superseded')
    })

    it('starts a period at payment time if paid after the end, on the plan and price chosen last', () => {
      expect(effect(year, renewal, '2027-03-02 10:00', switched('2026-03-01 10:00'))).to.equal(
        'restarted 2027-04-02 10:00',
      )
      expect(after(year, renewal, '2027-03-02 10:00', L)).to.deep.equal(['restarted', 2, 21])
    })

    it('keeps a price that was chosen after it was opened', () => {
      const sameplan: SubscriptionState = { ...until('2026-03-31 10:00'), priceId: 13 }
      const checkout = { ...renewal, isByRenewalLink: false }
      expect(after(sameplan, checkout, '2026-03-05 10:00', switched('2026-03-01 10:00'))).to.deep.equal([
        'extended',
        1,
        13,
      ])
    })

    it('sets its price if it is a checkout opened later; a renewal link never does', () => {
      const sameplan: SubscriptionState = { ...until('2026-03-31 10:00'), priceId: 13 }
      const later = { ...renewal, openedAt: utc('2026-03-02 10:00') }
      expect(
        after(sameplan, { ...later, isByRenewalLink: false }, '2026-03-05 10:00', switched('2026-03-01 10:00')),
      ).to.deep.equal(['extended', 1, 11])
      expect(after(sameplan, later, '2026-03-05 10:00', switched('2026-03-01 10:00'))).to.deep.equal([
        'extended',
        1,
        13,
      ])
    })
  })

  describe('a paid trial', () => {
    const trial = quoted({ purpose: 'trial', interval: { unit: 'week', count: 1 }, openedAt: utc('2026-03-02 10:00') })

    it('is superseded if it is paid while a subscription to any plan is valid', () => {
      expect(effect(year, trial, '2026-03-05 10:00', L)).to.equal('superseded')
      expect(effect(year, { ...trial, planId: 2 }, '2026-03-05 10:00', L)).to.equal('superseded')
    })
    it('trial_already_used wins over superseded, and already_lifetime over both', () => {
      const used = { ...trial, isTrialUsed: true }
      expect(effect(year, used, '2026-03-05 10:00', L)).to.equal('trial_already_used')
      expect(effect({ ...year, currentPeriodEnd: null }, used, '2026-03-05 10:00', L)).to.equal('already_lifetime')
    })
    it('starts if no subscription is valid', () => {
      expect(effect(null, trial, '2026-03-05 10:00')).to.equal('started 2026-03-12 10:00')
      expect(effect(year, trial, '2027-03-05 10:00', L)).to.equal('restarted 2027-03-12 10:00')
    })
  })

  describe('complete applies a superseded payment now, as it was bought', () => {
    const accepted = (changes: Partial<Quote>) =>
      quoted({ isAccepted: true, openedAt: utc('2026-03-10 10:00'), ...changes })
    it('a purchase starts its plan now', () =>
      expect(effect(year, accepted({ purpose: 'change' }), '2026-03-10 10:00', L)).to.equal(
        'restarted 2026-04-10 10:00',
      ))
    it('a purchase of the plan that has become valid extends it: no time is lost', () =>
      expect(effect(year, accepted({ purpose: 'start', planId: 2 }), '2026-03-10 10:00', L)).to.equal(
        'extended 2027-04-01 10:00',
      ))
    it('an extension extends the present period', () =>
      expect(effect(year, accepted({ purpose: 'extend' }), '2026-03-10 10:00', L)).to.equal(
        'extended 2027-04-01 10:00',
      ))
    it('a trial starts now', () =>
      expect(
        effect(year, accepted({ purpose: 'trial', interval: { unit: 'week', count: 1 } }), '2026-03-10 10:00', L),
      ).to.equal('restarted 2026-03-17 10:00'))
  })

  describe('the latest plan choice', () => {
    const line = (changes: Partial<ChoiceLine>): ChoiceLine => ({
      kind: 'extended',
      purpose: 'extend',
      isByRenewalLink: false,
      planId: 1,
      soldPlanId: 1,
      openedAt: utc('2026-05-01 10:00'),
      paidAt: utc('2026-05-02 10:00'),
      ...changes,
    })
    const times = (last: PlanChoice) => [last.isBought, last.openedAt, last.paidAt, last.pricedAt]

    it('is a payment that started, changed or restarted the subscription, with its opening and payment times', () => {
      for (const [kind, purpose] of [
        ['started', 'start'],
        ['restarted', 'change'],
        ['restarted', 'trial'],
      ] as const) {
        const at = line({ kind, purpose })
        expect(times(planChoiceAfter(FIRST, at))).to.deep.equal([true, at.openedAt, at.paidAt, at.openedAt])
      }
    })
    it('is a plan switch or an import, which are not purchases', () => {
      for (const kind of ['switched', 'imported'] as const)
        expect(planChoiceAfter(FIRST, line({ kind, purpose: null, planId: 2 })).isBought).to.equal(false)
    })
    it('is a switch to another price of the plan, which leaves it bought, or not', () => {
      const switched = line({ kind: 'switched', purpose: null })
      for (const isBought of [true, false])
        expect(planChoiceAfter({ ...FIRST, isBought }, switched)).to.deep.include({
          isBought,
          openedAt: switched.openedAt,
        })
    })
    it('is a renewal that restarted it after its end, which keeps how the plan was chosen and its price', () => {
      const at = line({ kind: 'restarted', isByRenewalLink: true })
      const last = switched('2026-03-01 10:00')
      expect(times(planChoiceAfter(last, at))).to.deep.equal([false, at.openedAt, at.paidAt, last.pricedAt])
    })
    it('is not set back by a late extension: it keeps the later of its two opening times', () => {
      const early = line({ kind: 'restarted', isByRenewalLink: true, openedAt: utc('2026-02-25 10:00') })
      const last = switched('2026-03-01 10:00')
      expect(planChoiceAfter(last, early)).to.deep.equal({ ...last, paidAt: early.paidAt })
    })
    it('supersedes a payment for another plan that was opened before a plan switch, after an extension that was paid late', () => {
      const extension = line({ kind: 'restarted', openedAt: utc('2026-02-25 10:00'), planId: 2 })
      const last = planChoiceAfter(switched('2026-03-01 10:00'), extension)
      const paid: SubscriptionState = { ...until('2026-06-02 10:00', 2), planId: 2, priceId: 21 }
      expect(effect(paid, change('2026-02-26 10:00'), '2026-05-03 10:00', last)).to.equal('superseded')
      expect(effect(paid, change('2026-03-01 10:00'), '2026-05-03 10:00', last)).to.equal('restarted 2026-06-03 10:00')
    })
    it('is an operator’s end, which keeps how the plan was chosen', () => {
      const at = line({ kind: 'ended', purpose: null })
      expect(times(planChoiceAfter(FIRST, at))).to.deep.equal([true, at.openedAt, at.paidAt, FIRST.pricedAt])
    })
    it('is not an extension: a checkout that extends sets only the price, a renewal not even that', () => {
      expect(planChoiceAfter(FIRST, line({}))).to.deep.equal({ ...FIRST, pricedAt: utc('2026-05-01 10:00') })
      expect(planChoiceAfter(FIRST, line({ isByRenewalLink: true }))).to.deep.equal(FIRST)
      expect(planChoiceAfter(FIRST, line({ soldPlanId: 2 }))).to.deep.equal(FIRST)
    })
  })
})
