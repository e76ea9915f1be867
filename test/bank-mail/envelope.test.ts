import { expect } from 'chai'
import { describe, it } from 'mocha'
import { forwardCodeIn, readEnvelope } from '#bank-mail/envelope.ts'

describe('the envelope of a relayed mail', () => {
  it('holds the address and the mail’s bytes', () => {
    const raw = Buffer.from([0, 255, 10, 13])
    expect(readEnvelope({ envelope_to: 'a@b', raw: raw.toString('base64') })).to.deep.equal({ envelopeTo: 'a@b', raw })
  })

  it('may have its base64 in lines', () => {
    const raw = Buffer.alloc(200, 7)
    const lines = raw.toString('base64').replace(/.{76}/g, '$&\r\n')
    expect(readEnvelope({ envelope_to: 'a@b', raw: lines }).raw).to.deep.equal(raw)
  })

  const REFUSED: Record<string, unknown> = {
    'no object': 'x',
    null: null,
    'an array': [],
    'no address': { raw: 'eA==' },
    'no mail': { envelope_to: 'a@b' },
    'an empty mail': { envelope_to: 'a@b', raw: '' },
    'an address that is no text': { envelope_to: 1, raw: 'eA==' },
    'an address of more than a thousand characters': { envelope_to: 'a'.repeat(1001), raw: 'eA==' },
    'a mail that is not base64': { envelope_to: 'a@b', raw: 'eA=*' },
    'base64 for addresses': { envelope_to: 'a@b', raw: '_-8=' },
    'base64 that ends early': { envelope_to: 'a@b', raw: 'eA=' },
    'an unknown field': { envelope_to: 'a@b', raw: 'eA==', more: 1 },
  }
  for (const [what, content] of Object.entries(REFUSED)) {
    it(`is refused with ${what}`, () => {
      expect(() => readEnvelope(content))
        .to.throw()
        .with.property('code', 'invalid_request')
    })
  }

  const CODES: Record<string, string | null> = {
    'bank+1234567890@pay.example.com': '1234567890',
    '<bank+1234567890@pay.example.com>': '1234567890',
    '1234567890@pay.example.com': '1234567890',
    'BANK-1234567890-x@pay.example.com': '1234567890',
    'bank+123456789@pay.example.com': null,
    'bank+12345678901@pay.example.com': null,
    'bank+1234567890+1234567890@pay.example.com': null,
    'bank@1234567890.example.com': null,
    'bank+1234567890': null,
    'bank+1234567890@a@b': null,
    'bank+１２３４５６７８９０@pay.example.com': null,
    '': null,
  }
  for (const [address, code] of Object.entries(CODES)) {
    it(`has ${code ? 'the forward code' : 'no forward code'} in "${address}"`, () => {
      expect(forwardCodeIn(address)).to.equal(code)
    })
  }
})
