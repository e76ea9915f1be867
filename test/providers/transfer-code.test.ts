import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import {
  findTransferCodes,
  isTransferCode,
  nearTransferCodes,
  newTransferCode,
} from '#providers/bank-transfer/transfer-code.ts'
import { processorMs } from '../support/processor-time.ts'

const ALPHABET = '23456789ABCDEFGHJKMNPQRSTUVWXYZ'
const CODES = Array.from({ length: 200 }, newTransferCode)
const CODE = CODES[0]!
const OTHER = CODES[1]!

describe('transfer code', () => {
  it('has 10 characters without 0, O, 1, I and L', () => {
    for (const code of CODES) expect(code).to.match(/^PG[2-9A-HJKMNP-Z]{8}$/)
    expect(new Set(CODES)).to.have.lengthOf(CODES.length)
  })

  it('is near every text with one character wrong, missing or too many, or two that changed places', () => {
    for (const code of CODES.slice(0, 20)) {
      for (const at of Array(code.length).keys()) {
        const [before, here, after] = [code.slice(0, at), code.charAt(at), code.slice(at + 1)]
        const swapped = before + after.charAt(0) + here + after.slice(1)
        for (const typo of [`${before}0${after}`, before + after, `${before}O${here}${after}`, swapped])
          if (typo !== code) expect(nearTransferCodes(typo.toLowerCase()), `${code} ${typo}`).to.include(code)
      }
      expect(nearTransferCodes(code)).not.to.include(code)
      expect(nearTransferCodes(code.slice(2)), 'too short').to.deep.equal([])
    }
  })

  it('differs from every text with one other character', () => {
    for (const code of CODES.slice(0, 40)) {
      for (const at of Array(code.length).keys()) {
        for (const character of ALPHABET) {
          const typo = code.slice(0, at) + character + code.slice(at + 1)
          if (typo !== code) expect(isTransferCode(typo), `${code} ${typo}`).to.equal(false)
        }
      }
    }
  })

  it('differs from every text with two neighbours swapped', () => {
    for (const code of CODES) {
      for (let at = 0; at + 1 < code.length; at += 1) {
        const swapped = code.slice(0, at) + code.charAt(at + 1) + code.charAt(at) + code.slice(at + 2)
        if (swapped !== code) expect(findTransferCodes(swapped), `${code} ${swapped}`).to.deep.equal([])
      }
    }
  })

  const spaced = Array.from(CODE).join(' ')
  const WRAPPED: Record<string, string> = {
    alone: CODE,
    'in small letters': CODE.toLowerCase(),
    'with blanks between all characters': spaced,
    'with punctuation': `${CODE.slice(0, 4)}-${CODE.slice(4, 7)}.${CODE.slice(7)}`,
    'with a line break inside': `${CODE.slice(0, 5)}\r\n${CODE.slice(5)}`,
    'with a blank that does not break': `${CODE.slice(0, 5)}\u00a0${CODE.slice(5)}`,
    'in wide letters': Array.from(CODE, (letter) => String.fromCodePoint(letter.codePointAt(0)! + 0xfee0)).join(''),
    'in what Vietcombank puts around it': `MBVCB.5076134614.082170.${CODE}.CT TU 1042536477 BUI GIA HUNG TOI 24692047`,
    'glued to what a bank puts around it': `MBVCB5076134614082170${CODE}CTTU1042536477BUIGIAHUNG`,
    'in what ACB puts behind it': `${CODE} 10000 GD 6256IBT1AJQYKLVM 130926-13:37:09`,
    'behind a payer’s own words': `chuyển tiền mua hàng ${CODE.toLowerCase()} cảm ơn`,
    'behind a broken beginning of a code': `PG PG${CODE}`,
    twice: `${CODE} ${CODE.toLowerCase()}`,
  }
  for (const [how, text] of Object.entries(WRAPPED)) {
    it(`is found ${how}`, () => {
      expect(findTransferCodes(text)).to.deep.equal([CODE])
    })
  }

  it('is found inside any text that has no beginning of a code of its own', () => {
    const around = fc.string({ maxLength: 40 }).filter((text) => !/[pｐ]/i.test(text.normalize('NFKD')))
    fc.assert(
      fc.property(around, around, fc.constantFrom(...CODES), (before, after, code) => {
        expect(findTransferCodes(`${before}${code}${after}`)).to.include(code)
      }),
    )
  })

  it('comes with the other one when there are two', () => {
    expect(findTransferCodes(`${CODE} ${OTHER}`)).to.deep.equal([CODE, OTHER])
    expect(findTransferCodes(`${OTHER}${CODE}`)).to.deep.equal([OTHER, CODE])
  })

  const NO_CODE: Record<string, string> = {
    'an account number': 'CT tu 9876543210 toi 0123456789',
    'a run of digits as long as a code': '2345678923',
    'a bank reference': 'GD 6256IBT1AJQYKLVM 130926-13:37:09',
    'a code without its first letter': CODE.slice(1),
    'a code without its last letter': CODE.slice(0, -1),
    'a code torn apart by more than three marks': `${CODE.slice(0, 5)} ... ${CODE.slice(5)}`,
    'a code in letters of another script': CODE.replace('P', 'Р'),
    nothing: '',
  }
  for (const [what, text] of Object.entries(NO_CODE)) {
    it(`is not ${what}`, () => {
      expect(findTransferCodes(text)).to.deep.equal([])
    })
  }

  it('is found in time proportional to the text', () => {
    const text = 'PG'.repeat(500_000)
    const before = processorMs()
    expect(findTransferCodes(text)).to.deep.equal([])
    expect(processorMs() - before).to.be.below(5000)
  })
})
