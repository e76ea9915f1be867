import { expect } from 'chai'
import { describe, it } from 'mocha'
import { amountsIn, isMeant, isWrittenAmount } from '#support/amounts.ts'
import { foldName, wordsOfName } from '#support/names.ts'

describe('amounts as people write them', () => {
  const means = (text: string, amount: number, currency: string): boolean =>
    amountsIn(text).some((meant) => isMeant(meant, { amount, currency }))

  for (const text of [
    ...[
      '99000',
      '99.000',
      '99,000',
      '99 000',
      "99'000",
      '99k',
      '99 nghìn',
      '99.000đ',
      '99.000 đ',
      '₫99,000',
      '99.000 VNĐ',
    ],
    ...['VND 99,000', '99000d', '99.000\u20ab'],
  ])
    it(`\`${text}\` is 99,000 dong`, () => {
      expect(means(text, 99_000, 'VND')).to.equal(true)
      for (const other of [9900, 990_000, 99_000_000]) expect(means(text, other, 'VND'), String(other)).to.equal(false)
    })

  it('knows millions, cents and currencies of three decimals', () => {
    for (const text of ['1,5tr', '1.5 triệu', '1.500k', '1.500.000', '1,500,000đ'])
      expect(means(text, 1_500_000, 'VND'), text).to.equal(true)
    for (const text of ['$14.99', '14,99', '14.99 USD', '14.99$', 'usd14.99', '$14.99 USD'])
      expect(means(text, 1499, 'USD'), text).to.equal(true)
    expect(means('14.9', 1490, 'EUR')).to.equal(true)
    expect(means('10', 1000, 'USD')).to.equal(true)
    expect(means('$1,499', 149_900, 'USD')).to.equal(true)
    expect(means('1.499', 1499, 'KWD')).to.equal(true)
    for (const [text, amount, currency] of [
      ['$14.99', 1499, 'VND'],
      ['14.99 EUR', 1499, 'USD'],
      ['99.000đ', 99_000, 'USD'],
      ['$14.99 CAD', 1499, 'USD'],
      ['$99.000đ', 99_000, 'VND'],
      ['USD 14.99 CAD', 1499, 'USD'],
    ] as const)
      expect(means(text, amount, currency), `${text} as ${currency}`).to.equal(false)
  })

  it('are told from ids, names and codes', () => {
    for (const text of ['99.000', '99k', '99.000đ', '$14.99']) expect(isWrittenAmount(text), text).to.equal(true)
    for (const text of ['99000', 'user-42', 'abc5', 'FT26X', '1.2.3.4', '99-000', 'VND', '', 'evt_1'])
      expect(isWrittenAmount(text), text).to.equal(false)
  })
})

describe('names as people search them', () => {
  it('are compared without case, diacritics and double blanks, composed or not', () => {
    expect(foldName('Nguyễn  Thị Lan')).to.equal('nguyen thi lan')
    expect(foldName('Nguyễn Thị Lan'.normalize('NFD'))).to.equal('nguyen thi lan')
    expect(foldName('ĐẶNG Văn Đức')).to.equal('dang van duc')
    expect(foldName('José Müller')).to.equal('jose muller')
  })

  it('are not looked for by one letter, a number, an address or a path', () => {
    for (const text of ['a', '42', 'an@example.com', 'x/y', 'a'.repeat(200)])
      expect(wordsOfName(text), text).to.deep.equal([])
    expect(wordsOfName(' Thị LAN ')).to.deep.equal(['thi', 'lan'])
  })
})
