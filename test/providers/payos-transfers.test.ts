import { expect } from 'chai'
import { describe, it } from 'mocha'
import { transfersOf, transfersToBook } from '#providers/payos/transfers.ts'

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

  const NOTHING = { sum: 0, hasUnlisted: false }
  const TO_BOOK: [what: string, link: object, booked: typeof NOTHING, expected: string[]][] = [
    ['the sum of a paid link that lists nothing', { amountPaid: 99_000, status: 'PAID' }, NOTHING, ['whole 99000']],
    ['the rest of it', { amountPaid: 99_000, status: 'PAID' }, { ...NOTHING, sum: 50_000 }, ['whole 49000']],
    [
      'its transfers if it lists them',
      { amountPaid: 99_000, status: 'PAID', transactions: [ft1] },
      NOTHING,
      ['FT1 50000'],
    ],
    ['nothing of a link that says paid and has too little', { amountPaid: 98_999, status: 'PAID' }, NOTHING, []],
    ['nothing of one that is not paid and lists nothing', { amountPaid: 99_000 }, NOTHING, []],
    [
      'nothing of transfers that are listed after their sum was booked',
      { amountPaid: 99_000, transactions: [ft1, ft2] },
      { sum: 99_000, hasUnlisted: true },
      [],
    ],
    [
      'what arrived since their sum was booked',
      { amountPaid: 149_000, transactions: [ft1, ft2] },
      { sum: 99_000, hasUnlisted: true },
      ['whole+99000 50000'],
    ],
  ]
  for (const [what, changes, booked, expected] of TO_BOOK) {
    it(`of which is booked: ${what}`, () => {
      const paid = { ...link, ...changes }
      const toBook = transfersToBook(paid, transfersOf(paid, null), booked)
      expect(toBook.map(({ reference, amount }) => `${reference} ${amount}`)).to.deep.equal(expected)
    })
  }
})
