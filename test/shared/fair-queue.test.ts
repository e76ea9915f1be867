import { expect } from 'chai'
import { describe, it } from 'mocha'
import { FairQueue } from '#shared/fair-queue.ts'
import { seededRandom } from '../support/seeded-random.ts'

interface Ready {
  readonly id: number
  readonly appId: number
}

const appOf = ({ appId }: Ready): number => appId
const always = (): boolean => true

describe('a fair queue', () => {
  const eventsOf = (appId: number, ...ids: number[]): Ready[] => ids.map((id) => ({ id, appId }))

  it('takes one item of each owner in turn, each owner’s in their order', () => {
    const queue = new FairQueue(appOf)
    queue.add([...eventsOf(1, 11, 12, 13), ...eventsOf(2, 21, 22), ...eventsOf(3, 31)])
    const left: number[] = []
    for (let event = queue.take(always); event; event = queue.take(always)) left.push(event.id)
    expect(left).to.deep.equal([11, 21, 31, 12, 22, 13])
    expect(queue.size).to.equal(0)
  })

  it('keeps the place of an owner that may not begin', () => {
    const queue = new FairQueue(appOf)
    queue.add([...eventsOf(1, 11), ...eventsOf(2, 21, 22, 23)])
    const notOne = (appId: number): boolean => appId !== 1
    expect([queue.take(notOne)?.id, queue.take(notOne)?.id]).to.deep.equal([21, 22])
    expect([queue.take(always)?.id, queue.take(always)?.id]).to.deep.equal([11, 23])
  })

  it('does not move an owner that adds more items', () => {
    const queue = new FairQueue(appOf)
    queue.add([...eventsOf(1, 11), ...eventsOf(2, 21)])
    queue.add([...eventsOf(3, 31), ...eventsOf(1, 12)])
    expect([1, 2, 3, 4].map(() => queue.take(always)?.id)).to.deep.equal([11, 21, 31, 12])
  })

  it('always takes from the owner that has waited longest, among those that may begin', () => {
    const random = seededRandom(29)
    const queue = new FairQueue(appOf)
    const waiting = new Map<number, { since: number; ids: number[] }>()
    let taken = 0
    for (let now = 0; now < 20_000; now += 1) {
      const appId = Math.floor(random() * 12)
      if (random() < 0.4) {
        queue.add(eventsOf(appId, now))
        const known = waiting.get(appId)
        if (known) known.ids.push(now)
        else waiting.set(appId, { since: now, ids: [now] })
        continue
      }
      const barred = new Set([appId, Math.floor(random() * 12)])
      const eligible = [...waiting].filter(([id]) => !barred.has(id))
      const [longest] = eligible.sort(([, a], [, b]) => a.since - b.since)
      const expected = longest?.[1].ids.shift() ?? null
      if (longest && longest[1].ids.length === 0) waiting.delete(longest[0])
      else if (longest) longest[1].since = now
      const event = queue.take((id) => !barred.has(id))
      expect(event?.id ?? null).to.equal(expected)
      if (event) taken += 1
    }
    expect(taken).to.be.greaterThan(5000)
  })

  it('gives everything at once', () => {
    const queue = new FairQueue(appOf)
    queue.add([...eventsOf(1, 11, 12), ...eventsOf(2, 21)])
    queue.take(always)
    expect(queue.size).to.equal(2)
    expect(queue.takeAll().map(({ id }) => id)).to.have.members([12, 21])
    expect([queue.size, queue.sizeOf(1), queue.take(always)]).to.deep.equal([0, 0, null])
  })
})
