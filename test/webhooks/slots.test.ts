import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { openSlots, type Slot, type Slots } from '#webhooks/slots.ts'

describe('the places of webhook attempts', () => {
  let nowMs = 0
  let slots: Slots

  beforeEach(() => {
    nowMs = 0
    slots = openSlots(() => nowMs)
  })

  function fill(appId: number): Slot[] {
    const begun: Slot[] = []
    while (slots.room(appId) > 0) begun.push(slots.begin(appId))
    return begun
  }

  function answerAll(begun: Slot[], afterMs: number): void {
    nowMs += afterMs
    for (const slot of begun) slots.end(slot, false)
  }

  it('an app begins with four', () => expect(fill(1)).to.have.length(4))

  it('doubles with each round that is answered at once, up to 64', () => {
    const rounds = [1, 2, 3, 4, 5, 6].map(() => {
      const begun = fill(1)
      answerAll(begun, 10)
      return begun.length
    })
    expect(rounds).to.deep.equal([4, 8, 16, 32, 64, 64])
  })

  it('a receiver that takes more than a second keeps four', () => {
    for (let round = 0; round < 5; round += 1) answerAll(fill(1), 10)
    const slow = fill(1)
    answerAll(slow, 1500)
    expect(fill(1)).to.have.length(4)
  })

  it('a receiver that does not answer in time gets one at a time', () => {
    const begun = fill(1)
    nowMs += 10_000
    for (const slot of begun) slots.end(slot, true)
    expect(fill(1)).to.have.length(1)
  })

  it('a receiver that answers again grows again', () => {
    const begun = fill(1)
    nowMs += 10_000
    for (const slot of begun) slots.end(slot, true)
    answerAll(fill(1), 10)
    expect(fill(1)).to.have.length(2)
  })

  it('many apps share 128 places', () => {
    const begun = Array.from({ length: 100 }, (_, appId) => fill(appId).length)
    expect(begun.reduce((sum, count) => sum + count, 0)).to.equal(128)
  })

  it('receivers that hang give their places to others after a second', () => {
    for (let appId = 0; appId < 100; appId += 1) fill(appId)
    expect(slots.room(1000)).to.equal(0)
    nowMs += 1000
    expect(slots.room(1000)).to.equal(4)
    expect(slots.room(0)).to.equal(0)
  })

  it('the last 16 are for apps that have no attempt open: what answers at once does not wait for what is slow', () => {
    for (let appId = 0; appId < 28; appId += 1) fill(appId)
    expect([slots.room(0), slots.room(27), slots.room(28)]).to.deep.equal([0, 0, 4])
    expect(fill(28)).to.have.length(1)
  })

  it('holds nothing ready behind the attempts of a receiver that is slow', () => {
    expect(slots.depth(1)).to.equal(8)
    const slow = fill(1)
    expect(slots.depth(1)).to.equal(4)
    nowMs += 1000
    slots.room(1)
    expect(slots.depth(1)).to.equal(0)
    slots.end(slow[0]!, false)
    expect(slots.depth(1)).to.equal(1)
  })

  it('an app whose receiver hung waits for its turn like others, also while every place is taken', () => {
    for (const slot of fill(1)) slots.end(slot, true)
    for (let appId = 2; appId < 100; appId += 1) fill(appId)
    expect(slots.room(1)).to.equal(0)
    expect(slots.depth(1)).to.equal(1)
  })

  it('opens 2048 sockets at most', () => {
    let open = 0
    for (let appId = 0; appId < 1000; appId += 1) {
      open += fill(appId).length
      nowMs += 1000
    }
    expect(open).to.equal(2048)
  })
})
