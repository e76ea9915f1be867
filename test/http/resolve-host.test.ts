import { expect } from 'chai'
import { describe, it } from 'mocha'
import { resolveHost } from '#http/outbound/resolve-host.ts'

describe('the resolver of receivers’ host names', () => {
  it('returns an IP address unchanged', async () => {
    expect(await resolveHost('192.0.2.7')).to.deep.equal(['192.0.2.7'])
    expect(await resolveHost('2001:db8::7')).to.deep.equal(['2001:db8::7'])
  })

  it('resolves names that only the system knows', async () => {
    const addresses = await resolveHost('localhost')
    expect(addresses.some((address) => address === '127.0.0.1' || address === '::1')).to.equal(true)
  })
})
