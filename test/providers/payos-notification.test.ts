import { expect } from 'chai'
import { describe, it } from 'mocha'
import { readNotification } from '#providers/payos/notification.ts'

const SIGNATURE = 'a'.repeat(64)

/** Data that counts how many of its fields are looked at. */
function countedData(fields: number): { data: object; looks: () => number } {
  let looks = 0
  const plain = Object.fromEntries(Array.from({ length: fields }, (_, index) => [`field${index}`, index]))
  const data = new Proxy(plain, {
    get: (...access) => {
      looks += 1
      return Reflect.get(...access) as unknown
    },
  })
  return { data, looks: () => looks }
}

describe('the work for a PayOS notification that nobody signed', () => {
  it('no field is looked at where the signature has not the form of one', () => {
    for (const signature of [undefined, '', 1, [SIGNATURE], SIGNATURE.slice(1), SIGNATURE.toUpperCase()]) {
      const { data, looks } = countedData(20)
      expect(readNotification({ signature, data })).to.equal(null)
      expect(looks()).to.equal(0)
    }
  })

  it('no field is looked at where there are more than 100: 24,000 cost no more than 101', () => {
    for (const fields of [101, 24_000]) {
      const { data, looks } = countedData(fields)
      expect(readNotification({ signature: SIGNATURE, data })).to.equal(null)
      expect(looks()).to.equal(0)
    }
  })

  it('100 fields are read', () => {
    const { data, looks } = countedData(100)
    readNotification({ signature: SIGNATURE, data })
    expect(looks()).to.be.at.least(100)
  })
})
