import { expect } from 'chai'
import { describe, it } from 'mocha'
import { fromStripeAmount, isChargeable, toStripeAmount } from '#providers/card/amount.ts'

describe('amounts at the card provider', () => {
  const CONVERTED: [ours: number, currency: string, theirs: number | null, why: string][] = [
    [1099, 'USD', 1099, 'two decimals are the same on both sides'],
    [99_000, 'VND', 99_000, 'no decimals are the same on both sides'],
    [500, 'JPY', 500, 'no decimals are the same on both sides'],
    [5, 'UGX', 500, 'UGX has no decimals, and two at Stripe'],
    [5, 'ISK', 500, 'ISK has no decimals, and two at Stripe'],
    [12_340, 'KWD', 12_340, 'three decimals are the same on both sides'],
    [12_340, 'BHD', 12_340, 'three decimals are the same on both sides'],
    [1, 'HUF', 1, 'HUF can be charged with two decimals'],
    [Number.MAX_SAFE_INTEGER, 'UGX', null, 'beyond what a number holds exactly'],
  ]
  for (const [ours, currency, theirs, why] of CONVERTED) {
    it(`${ours} ${currency} is ${theirs ?? 'nothing'} at Stripe: ${why}`, () => {
      expect(toStripeAmount(ours, currency)).to.equal(theirs)
      if (theirs !== null) expect(fromStripeAmount(theirs, currency)).to.equal(ours)
    })
  }

  it('a fraction of a unit that the currency does not have is no amount of ours', () => {
    expect(fromStripeAmount(150, 'UGX')).to.equal(null)
    expect(fromStripeAmount(501, 'ISK')).to.equal(null)
  })

  const CHARGEABLE: [amount: number, currency: string, can: boolean, why: string][] = [
    [50, 'USD', true, 'the least in USD'],
    [49, 'USD', false, 'below the least in USD'],
    [30, 'GBP', true, 'the least in GBP'],
    [29, 'GBP', false, 'below the least in GBP'],
    [400, 'HKD', true, 'the least in HKD'],
    [399, 'HKD', false, 'below the least in HKD'],
    [50, 'JPY', true, 'the least in JPY'],
    [49, 'JPY', false, 'below the least in JPY'],
    [1000, 'MXN', true, 'the least in MXN'],
    [999, 'MXN', false, 'below the least in MXN'],
    [17_500, 'HUF', true, 'the least in HUF'],
    [17_499, 'HUF', false, 'below the least in HUF'],
    [1, 'VND', true, 'no least is known for VND'],
    [99_999_999, 'USD', true, 'eight digits'],
    [100_000_000, 'USD', false, 'nine digits'],
    [99_999_999, 'VND', true, 'eight digits'],
    [100_000_000, 'VND', false, 'nine digits'],
    [999_999, 'ISK', true, 'eight digits at Stripe'],
    [1_000_000, 'ISK', false, 'nine digits at Stripe'],
    [100_000_000, 'IDR', true, 'IDR may have twelve digits'],
    [1_000_000_000_000, 'IDR', false, 'thirteen digits'],
    [12_340, 'KWD', true, 'three decimals, the last one 0'],
    [12_345, 'KWD', false, 'three decimals, the last one not 0'],
    [12_341, 'BHD', false, 'three decimals, the last one not 0'],
    [12_340, 'JOD', true, 'three decimals, the last one 0'],
    [12_340, 'OMR', true, 'three decimals, the last one 0'],
    [12_349, 'TND', false, 'three decimals, the last one not 0'],
    [12_340, 'IQD', false, 'Stripe does not take IQD'],
    [Number.MAX_SAFE_INTEGER, 'UGX', false, 'beyond what a number holds exactly'],
  ]
  for (const [amount, currency, can, why] of CHARGEABLE) {
    it(`${amount} ${currency} ${can ? 'can' : 'cannot'} be charged: ${why}`, () => {
      expect(isChargeable(amount, currency)).to.equal(can)
    })
  }
})
