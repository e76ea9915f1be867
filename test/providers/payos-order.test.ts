import { createHmac } from 'node:crypto'
import { PayOS } from '@payos/node'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import {
  transactionsIn,
  transferTextOf,
  isOurLink,
  linkEnd,
  newOrderCode,
  paymentPageOf,
  parsePayosTime,
} from '#providers/payos/order.ts'
import { isSignedByOne, type SignedFields } from '#providers/payos/signature.ts'
import { asRealTime } from '#shared/time.ts'

describe("PayOS's orders and signatures", () => {
  // Published at payos.vn/docs/tich-hop-webhook/kiem-tra-du-lieu-voi-signature.
  const KEY = '1a54716c8f0efb2744fb28b6e38b25da7f67a925d98bc1c18bd8faaecadd7675'
  const PUBLISHED = {
    orderCode: 123,
    amount: 3000,
    description: 'VQRIO123',
    accountNumber: '12345678',
    reference: 'TF230204212323',
    transactionDateTime: '2023-02-04 18:25:00',
    currency: 'VND',
    paymentLinkId: '124c33293c43417ab7879e14c8d9eb18',
    code: '00',
    desc: 'Thành công',
    counterAccountBankId: '',
    counterAccountBankName: '',
    counterAccountName: '',
    counterAccountNumber: '',
    virtualAccountName: '',
    virtualAccountNumber: '',
  }

  it("PayOS's published example signs as published", () => {
    const signature = '412e915d2871504ed31be63c8f62a149a4410d34c4c42affc9006ef9917eaa03'
    const isSigned = (fields: SignedFields, text: string) => isSignedByOne([KEY], fields, text)
    expect(isSigned(PUBLISHED, signature)).to.equal(true)
    expect(isSigned({ ...PUBLISHED, amount: 3001 }, signature)).to.equal(false)
    expect(isSigned(PUBLISHED, signature.toUpperCase())).to.equal(false)
    expect(isSigned(PUBLISHED, signature.slice(1))).to.equal(false)
    expect(isSigned(PUBLISHED, '')).to.equal(false)
  })

  it('every kind of value signs as in the official SDK', async () => {
    const sdk = new PayOS({ clientId: 'c', apiKey: 'a', checksumKey: KEY })
    const cases: SignedFields[] = [
      PUBLISHED,
      { b: null, a: 'null', c: 'undefined', d: 0 },
      { zebra: true, Alpha: false, é: 'é', text: 'a=b&c=d', empty: '', number: 1e21 },
    ]
    for (const fields of cases) {
      const signature = (await sdk.crypto.createSignatureFromObj({ ...fields }, KEY)) ?? ''
      expect(isSignedByOne([KEY], fields, signature), signature).to.equal(true)
    }
  })

  it('one key of several is enough, and what was signed is put together once for all of them', () => {
    const countReads = (keys: readonly string[]): number => {
      let reads = 0
      const fields = {
        get amount() {
          reads += 1
          return 3000
        },
      }
      const signature = createHmac('sha256', KEY).update('amount=3000').digest('hex')
      expect(isSignedByOne(keys, fields, signature)).to.equal(keys.includes(KEY))
      return reads
    }
    const others = Array.from({ length: 500 }, (_, index) => `key-${index}`)
    expect(countReads([...others, KEY])).to.equal(countReads(['another']))
  })

  it('an order code is the transaction and six random digits, a safe integer', () => {
    const codes = new Set(Array.from({ length: 200 }, () => newOrderCode(42)))
    for (const code of codes) expect(code).to.match(/^42\d{6}$/)
    expect(codes.size).to.be.greaterThan(190)
    expect(Number.isSafeInteger(Number(newOrderCode(9_007_199_253)))).to.equal(true)
    expect(() => newOrderCode(9_007_199_255)).to.throw('has no order code')
  })

  it('a description has at most nine plain characters, for accounts that are not linked through PayOS', () => {
    expect(transferTextOf(1)).to.equal('PG1')
    expect(transferTextOf(1_234_567)).to.equal('PG1234567')
    expect(transferTextOf(91_234_567)).to.equal('PG1234567')
  })

  for (const [text, expected] of [
    ['PG17', [17]],
    ['CSX7K2 pg17 FT26301123456', [17]],
    ['PG17.CT tu 0123456789', [17]],
    ['PG7KD4MXQT', []],
    ['PG23456789', []],
    ['XPG17', []],
    ['PG017', []],
    ['PG0', []],
    ['PG', []],
  ] as const) {
    it(`the text of a transfer "${text}" names ${expected.length === 0 ? 'no transaction' : `transaction ${expected[0]}`}`, () => {
      expect(transactionsIn(text)).to.deep.equal(expected)
    })
  }

  it('the text of a transfer names the transactions after the gap of a restored backup, too', () => {
    for (const id of [17, 1_234_567, 10_000_017, 11_234_567, 20_000_000, 90_000_018])
      expect(transactionsIn(transferTextOf(id)), String(id)).to.include(id)
    expect(transactionsIn('PG0000017')[0]).to.equal(10_000_017)
    expect(transactionsIn('PG1234567').slice(0, 2)).to.deep.equal([1_234_567, 11_234_567])
  })

  it('a link ends with the checkout, and at least five minutes from now', () => {
    const now = asRealTime(new Date('2026-03-01T10:00:00Z'))
    expect(linkEnd(asRealTime(new Date('2026-03-01T11:00:00Z')), now)).to.deep.equal(
      asRealTime(new Date('2026-03-01T11:00:00Z')),
    )
    expect(linkEnd(asRealTime(new Date('2026-03-01T10:00:01Z')), now)).to.deep.equal(
      asRealTime(new Date('2026-03-01T10:05:00Z')),
    )
  })

  it('the address of a page is the one that PayOS says, or is built as PayOS does', () => {
    expect(paymentPageOf({ id: 'abc', checkoutUrl: 'https://pay.example/abc' })).to.equal('https://pay.example/abc')
    expect(paymentPageOf({ id: 'abc' })).to.equal('https://pay.payos.vn/web/abc')
  })

  it('times are read with their offset, and as Vietnam time if they have none', () => {
    const instant = asRealTime(new Date('2026-03-01T10:00:00Z'))
    expect(parsePayosTime('2026-03-01 17:00:00')).to.deep.equal(instant)
    expect(parsePayosTime('2026-03-01T17:00:00+07:00')).to.deep.equal(instant)
    expect(parsePayosTime('2026-03-01T10:00:00.000Z')).to.deep.equal(instant)
    for (const text of ['', 'yesterday', '2026-02-30 10:00:00', '2026-03-01T10:00:00', undefined]) {
      expect(parsePayosTime(text), String(text)).to.equal(null)
    }
  })

  it('a link under our order code is ours when amount and age fit', () => {
    const session = { amount: 99_000, createdAt: asRealTime(new Date('2026-03-01T10:00:00Z')) }
    expect(isOurLink({ amount: 99_000, createdAt: '2026-03-01T17:00:01+07:00' }, session)).to.equal(true)
    expect(isOurLink({ amount: 99_000 }, session)).to.equal(true)
    expect(isOurLink({ amount: 98_000, createdAt: '2026-03-01T17:00:01+07:00' }, session)).to.equal(false)
    expect(isOurLink({ amount: 99_000, createdAt: '2026-02-01T17:00:01+07:00' }, session)).to.equal(false)
  })
})
