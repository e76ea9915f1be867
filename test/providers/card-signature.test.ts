import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Stripe } from 'stripe'
import { isSignedWith, parseSignature } from '#providers/card/signature.ts'
import { isTimely } from '#shared/signed-time.ts'
import { asRealTime } from '#shared/time.ts'

const SECRET = 'whsec_test'
const NOW = 1_772_359_200
const BODY = Buffer.from('{"id":"evt_1"}')

function header(timestamp = NOW, payload = BODY.toString(), secret = SECRET): string {
  return Stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp })
}

function accepts(text: string | undefined, body = BODY): boolean {
  const signature = parseSignature(text)
  return (
    signature !== null &&
    isTimely(signature.timestamp, asRealTime(new Date(NOW * 1000))) &&
    isSignedWith(SECRET, signature, body)
  )
}

describe("the card provider's signature", () => {
  it("the SDK's own signature of these bytes is accepted", () => {
    expect(accepts(header())).to.equal(true)
  })

  for (const [seconds, isAccepted] of [
    [-301, false],
    [-300, true],
    [0, true],
    [300, true],
    [301, false],
    [86_400, false],
  ] as const) {
    it(`a timestamp ${seconds} s from now is ${isAccepted ? 'accepted' : 'refused'}`, () => {
      expect(accepts(header(NOW + seconds))).to.equal(isAccepted)
    })
  }

  it('one of several signatures is enough while the secret is rolled', () => {
    const good = header()
    expect(accepts(`${good},v1=${'0'.repeat(64)}`)).to.equal(true)
    expect(accepts(good.replace('v1=', `v1=${'0'.repeat(64)},v1=`))).to.equal(true)
    expect(accepts(`${good},v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39`)).to.equal(true)
  })

  it('five signatures are read, and no more', () => {
    const hex = header().split('v1=')[1]!
    const others = (count: number) => `,v1=${'0'.repeat(64)}`.repeat(count)
    expect(accepts(`t=${NOW}${others(4)},v1=${hex}`)).to.equal(true)
    expect(parseSignature(`t=${NOW}${others(5)},v1=${hex}`)).to.equal(null)
    expect(parseSignature(`t=${NOW},v1=${hex}${others(100)}`)).to.equal(null)
  })

  it('other bytes, another secret and another timestamp are refused', () => {
    expect(accepts(header(), Buffer.from('{"id":"evt_2"}'))).to.equal(false)
    expect(accepts(header(NOW, BODY.toString(), 'whsec_other'))).to.equal(false)
    expect(accepts(header().replace(`t=${NOW}`, `t=${NOW + 1}`))).to.equal(false)
  })

  it('re-serialised JSON, a byte-order mark and another line end are other bytes', () => {
    const signed = header(NOW, '{"id": "evt_1"}')
    expect(accepts(signed, Buffer.from('{"id": "evt_1"}'))).to.equal(true)
    expect(accepts(signed, Buffer.from(JSON.stringify({ id: 'evt_1' })))).to.equal(false)
    expect(accepts(signed, Buffer.from('\uFEFF{"id": "evt_1"}'))).to.equal(false)
    expect(accepts(signed, Buffer.from('{"id": "evt_1"}\r\n'))).to.equal(false)
  })

  it('bytes that are no UTF-8 are signed as they are', () => {
    const hex = header(NOW, '\uFFFD').split('v1=')[1]!
    expect(accepts(`t=${NOW},v1=${hex}`, Buffer.from([0xff]))).to.equal(false)
  })

  it('a signature of any other length, case or alphabet is refused', () => {
    const hex = header().split('v1=')[1]!
    for (let length = 0; length <= 200; length += 1) {
      const text = hex.repeat(4).slice(0, length)
      expect(accepts(`t=${NOW},v1=${text}`), `length ${length}`).to.equal(length === 64)
    }
    expect(accepts(`t=${NOW},v1=${hex.toUpperCase()}`)).to.equal(false)
    expect(accepts(`t=${NOW},v1=${'z'.repeat(64)}`)).to.equal(false)
    expect(accepts(`t=${NOW},v0=${hex}`)).to.equal(false)
  })

  const MALFORMED = {
    'no header': undefined,
    'an empty header': '',
    'no timestamp': `v1=${'0'.repeat(64)}`,
    'no signature': `t=${NOW}`,
    'two timestamps': `t=${NOW},t=${NOW},v1=${'0'.repeat(64)}`,
    'two headers, joined': `${header()}, ${header()}`,
    'a timestamp that is no number': header().replace(`t=${NOW}`, 't=now'),
    'a timestamp in hex': header().replace(`t=${NOW}`, 't=0x10'),
    'a negative timestamp': header().replace(`t=${NOW}`, `t=-${NOW}`),
    'a timestamp with blanks': header().replace('t=', 't= '),
    'a signature beside one of other form': `${header()},v1=abc`,
    'a line break': `${header()}\r\nX: y`,
    words: 'signed by me',
  }
  for (const [what, text] of Object.entries(MALFORMED)) {
    it(`${what} is refused`, () => {
      expect(parseSignature(text)).to.equal(null)
    })
  }
})
