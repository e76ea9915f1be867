import { expect } from 'chai'
import { describe, it } from 'mocha'
import { findBank, VIETQR_LIST } from '#bank-accounts/banks.ts'

/** As the bank signs. */
const NAME = 'Ngân hàng TMCP Ngoại thương Việt Nam'

describe('banks', () => {
  for (const text of [
    'VCB',
    'vcb',
    '970436',
    'Vietcombank',
    'VIETCOMBANK',
    ' vietcom bank ',
    NAME,
    'ngoai thuong viet nam',
  ]) {
    it(`finds Vietcombank as "${text}"`, () => {
      expect(findBank(text)).to.deep.equal({ bin: '970436', code: 'VCB', name: 'Vietcombank' })
    })
  }

  it('has four banks whose mails are read', () => {
    expect(['acb', 'timo', 'cake', 'mb'].map((code) => findBank(code)?.bin)).to.deep.equal([
      '970416',
      '963388',
      '546034',
      '970422',
    ])
  })

  it('finds no bank by a text that is none', () => {
    for (const text of ['', ' ', 'XYZ', 'Ngân hàng', '000000', '970436x']) expect(findBank(text)).to.equal(null)
  })

  it('has each BIN and each code once, and finds each bank by BIN, code and name', () => {
    for (const [bin, code, name] of VIETQR_LIST) {
      expect(bin).to.match(/^\d{6}$/)
      for (const word of [bin, code, name]) expect(findBank(word), word).to.deep.equal({ bin, code, name })
    }
    expect(new Set(VIETQR_LIST.map(([bin]) => bin))).to.have.lengthOf(VIETQR_LIST.length)
  })
})
