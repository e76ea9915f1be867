import { expect } from 'chai'
import { describe, it } from 'mocha'
import { transfersOf, unlistedOf } from '#providers/payos/transfers.ts'

describe('the transfers that PayOS vouches for', () => {
  const link = { id: 'l', orderCode: 1, amount: 99_000, status: 'PENDING' }
  const ft1 = { reference: 'FT1', amount: 50_000 }
  const ft2 = { reference: 'FT2', amount: 49_000 }

  const CASES: [what: string, link: object, notified: typeof ft1 | null, expected: string[]][] = [
    ['none of an unpaid link', { amountPaid: 0, transactions: [] }, null, []],
    ['those that it lists', { amountPaid: 99_000, transactions: [ft1, ft2] }, ft2, ['FT1 50000', 'FT2 49000']],
    ['not a notified one that it has not received', { amountPaid: 0, transactions: [] }, ft1, []],
    ['a notified one that it has received but does not list yet', { amountPaid: 50_000 }, ft1, ['FT1 50000']],
    ['not more of it than it has received', { amountPaid: 50_000, transactions: [ft1] }, ft2, ['FT1 50000']],
    ['no sums below nothing', { amountPaid: 0, transactions: [{ reference: 'FT3', amount: -1 }] }, null, []],
  ]
  for (const [what, changes, notified, expected] of CASES) {
    it(what, () => {
      const transfers = transfersOf({ ...link, ...changes }, notified)
      expect(transfers.map(({ reference, amount }) => `${reference} ${amount}`)).to.deep.equal(expected)
    })
  }

  const UNLISTED: [what: string, link: object, expected: number | null][] = [
    ['the sum of a paid link that lists nothing', { amountPaid: 99_000, status: 'PAID' }, 99_000],
    ['nothing of one that lists its transfers', { amountPaid: 99_000, status: 'PAID', transactions: [ft1, ft2] }, null],
    ['nothing of a link that says paid and has too little', { amountPaid: 98_999, status: 'PAID' }, null],
    ['nothing of one that is not paid', { amountPaid: 99_000 }, null],
  ]
  for (const [what, changes, expected] of UNLISTED) {
    it(what, () => {
      expect(unlistedOf({ ...link, ...changes })).to.equal(expected)
    })
  }
})
