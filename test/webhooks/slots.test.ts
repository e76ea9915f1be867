import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { Slots, type Slot } from '#webhooks/slots.ts'

describe('the concurrency limit of webhook attempts', () => {
  let nowMs = 0
  let slots: Slots

  beforeEach(() => {
    nowMs = 0
    slots = new Slots(() => nowMs)
  })

  function fill(appId: number): Slot[] {
    const begun: Slot[] = []
    while (slots.capacity(appId) > 0) begun.push(slots.begin(appId))
    return begun
  }

  function answerAll(begun: Slot[], afterMs: number): void {
    nowMs += afterMs
    for (const slot of begun) slots.end(slot, false)
  }

  it('starts at four per app', () => expect(fill(1)).to.have.length(4))

  it('doubles with each round that is answered promptly, up to 64', () => {
    const rounds = [1, 2, 3, 4, 5, 6].map(() => {
      const begun = fill(1)
      answerAll(begun, 10)
      return begun.length
    })
    expect(rounds).to.deep.equal([4, 8, 16, 32, 64, 64])
  })

  it('goes back to four for a receiver that takes more than a second', () => {
    for (let round = 0; round < 5; round += 1) answerAll(fill(1), 10)
    const slow = fill(1)
    answerAll(slow, 1500)
    expect(fill(1)).to.have.length(4)
  })

  it('is one for a receiver that did not answer in time', () => {
    const begun = fill(1)
    nowMs += 10_000
    for (const slot of begun) slots.end(slot, true)
    expect(fill(1)).to.have.length(1)
  })

  it('grows again for a receiver that answers again', () => {
    const begun = fill(1)
    nowMs += 10_000
    for (const slot of begun) slots.end(slot, true)
    answerAll(fill(1), 10)
    expect(fill(1)).to.have.length(2)
  })

  it('is 128 over all apps', () => {
    const begun = Array.from({ length: 100 }, (_, appId) => fill(appId).length)
    expect(begun.reduce((sum, count) => sum + count, 0)).to.equal(128)
  })

  it('does not count attempts that have been open for a second against other apps', () => {
    for (let appId = 0; appId < 100; appId += 1) fill(appId)
    expect(slots.capacity(1000)).to.equal(0)
    nowMs += 1000
    expect(slots.capacity(1000)).to.equal(4)
    expect(slots.capacity(0)).to.equal(0)
  })

  it('reserves the last 16 places for apps without an open attempt, so that prompt receivers do not wait for slow ones', () => {
    for (let appId = 0; appId < 28; appId += 1) fill(appId)
    expect([slots.capacity(0), slots.capacity(27), slots.capacity(28)]).to.deep.equal([0, 0, 4])
    expect(fill(28)).to.have.length(1)
  })

  it('claims no events in advance for a slow receiver', () => {
    expect(slots.depth(1)).to.equal(8)
    const slow = fill(1)
    expect(slots.depth(1)).to.equal(4)
    nowMs += 1000
    slots.capacity(1)
    expect(slots.depth(1)).to.equal(0)
    slots.end(slow[0]!, false)
    expect(slots.depth(1)).to.equal(1)
  })

  it('keeps one event ready for an app whose receiver hung, even while every place is taken', () => {
    for (const slot of fill(1)) slots.end(slot, true)
    for (let appId = 2; appId < 100; appId += 1) fill(appId)
    expect(slots.capacity(1)).to.equal(0)
    expect(slots.depth(1)).to.equal(1)
  })

  it('allows at most 2048 open sockets', () => {
    let open = 0
    for (let appId = 0; appId < 1000; appId += 1) {
      open += fill(appId).length
      nowMs += 1000
    }
    expect(open).to.equal(2048)
  })
})
