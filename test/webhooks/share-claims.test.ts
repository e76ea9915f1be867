import { expect } from 'chai'
import { describe, it } from 'mocha'
import { CLAIM_SIZE, MAX_READY, shareClaims } from '#webhooks/share-claims.ts'

describe('the next claim of due webhooks', () => {
  const apps = (count: number, held: number, depth: number) =>
    Array.from({ length: count }, (_, appId) => ({ appId, held, depth }))
  const sum = (shares: ReadonlyMap<number, number>) => [...shares.values()].reduce((total, share) => total + share, 0)

  it('takes as many of a single app as its receiver will accept soon', () => {
    expect(shareClaims(apps(1, 0, 8), 0)).to.deep.equal(new Map([[0, 8]]))
    expect(shareClaims(apps(1, 0, 1000), 0)).to.deep.equal(new Map([[0, CLAIM_SIZE]]))
  })

  it('takes the same number of each of many apps', () => {
    const shares = shareClaims(apps(20, 0, 128), 0)
    expect(sum(shares)).to.equal(CLAIM_SIZE)
    expect(Math.max(...shares.values()) - Math.min(...shares.values())).to.be.at.most(1)
  })

  it('takes one of an app without claimed events, however many others have', () => {
    const held = MAX_READY / 2 / 20
    const busy = apps(20, held, 512)
    expect(shareClaims([...busy, { appId: 20, held: 0, depth: 8 }], 20 * held)).to.deep.equal(new Map([[20, 1]]))
  })

  it('takes those of the apps that have waited longest if there are more apps than places', () => {
    expect([...shareClaims(apps(2 * CLAIM_SIZE, 0, 8), 0).keys()]).to.deep.equal(
      apps(CLAIM_SIZE, 0, 8).map(({ appId }) => appId),
    )
  })

  it('never takes so many that they would wait longer than a lease lasts', () => {
    expect(sum(shareClaims(apps(1000, 0, 8), MAX_READY - 3))).to.equal(3)
    expect(shareClaims(apps(1000, 0, 8), MAX_READY)).to.deep.equal(new Map())
    let ready = 0
    for (let claims = 0; claims < 10; claims += 1) ready += sum(shareClaims(apps(3, 1, 10_000), ready))
    expect(ready).to.be.at.most(MAX_READY / 2)
  })

  it('takes none of an app that may not start any, nor of one with more than half of its claimed events left', () => {
    expect(shareClaims(apps(3, 0, 0), 0)).to.deep.equal(new Map())
    expect(shareClaims(apps(3, 5, 8), 15)).to.deep.equal(new Map())
    expect(shareClaims(apps(1, 4, 8), 4)).to.deep.equal(new Map([[0, 4]]))
  })
})
