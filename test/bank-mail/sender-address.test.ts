import { expect } from 'chai'
import { describe, it } from 'mocha'
import { readSoleAddress } from '#bank-mail/sender-address.ts'

const TIMO = { localPart: 'support', domain: 'timo.vn' }

describe('the address of a From', () => {
  const PLAIN = [
    'support@timo.vn',
    ' <support@timo.vn> ',
    'Timo Support <support@timo.vn>',
    '"Timo, the bank" <support@timo.vn>',
    '"support@evil.example" <support@timo.vn>',
    '=?utf-8?Q?Timo?= <support@TIMO.vn>',
    'Timo (a (nested) comment) <support@timo.vn> (another)',
    'Ng\xc3\xa2n h\xc3\xa0ng s\xe1\xbb\x91 Timo <support@timo.vn>',
  ]
  for (const value of PLAIN) {
    it(`is read from ${value}`, () => {
      expect(readSoleAddress(value)).to.deep.equal(TIMO)
    })
  }

  it('is the one in angle brackets, never the name', () => {
    expect(readSoleAddress('"support@timo.vn" <x@evil.example>')?.domain).to.equal('evil.example')
  })

  const NOT_ONE: Record<string, string> = {
    'two addresses': 'support@timo.vn, x@evil.example',
    'two addresses in angle brackets': '<support@timo.vn> <x@evil.example>',
    'an address and another in angle brackets': 'support@timo.vn <x@evil.example>',
    'a group': 'Timo: support@timo.vn;',
    'a route': '<@evil.example:support@timo.vn>',
    'a quoted local part': '"support"@timo.vn',
    'a quoted pair': 'support\\@timo.vn',
    'an encoded address': '=?utf-8?Q?support=40timo.vn?=',
    'a domain in other letters': 'support@tim\xd0\xbe.vn',
    'a domain literal': 'support@[203.0.113.7]',
    'a domain without a dot': 'support@timo',
    'a domain that ends with a dot': 'support@timo.vn.',
    'a blank inside': 'support @timo.vn',
    'a comment that does not end': 'support@timo.vn (',
    'a quote that does not end': '"support@timo.vn',
    'two at signs': 'support@evil.example@timo.vn',
    'a NUL': 'support@timo.vn\0',
    nothing: '',
    'a name alone': 'Timo Support',
    'a thousand characters and more': `${'a'.repeat(1000)}@timo.vn`,
  }
  for (const [what, value] of Object.entries(NOT_ONE)) {
    it(`is not read from ${what}`, () => {
      expect(readSoleAddress(value)).to.equal(null)
    })
  }
})
