import { expect } from 'chai'
import { describe, it } from 'mocha'
import { QueuePace } from '#http/queue-pace.ts'

describe('the expected wait in a queue', () => {
  /** Sampled every 50 ms, where `begun` has how many began since the last sample; returns the expected wait behind 100 others at the end. */
  function paced(...begun: number[]): number {
    const pace = new QueuePace()
    pace.start()
    pace.sample(0, 0)
    for (const [index, count] of begun.entries()) {
      for (let one = 0; one < count; one += 1) pace.began()
      pace.sample((index + 1) * 50, (index + 1) * 50)
    }
    return pace.expectedMs(100)
  }
  const steady = (looks: number, begun: number) => Array.from({ length: looks }, () => begun)

  it('is the recent time per caller, times the callers in front', () => {
    expect(paced(...steady(10, 5))).to.equal(1000)
    expect(paced(...steady(10, 1))).to.equal(5000)
  })

  it('is unknown in the first quarter of a second: a burst is served', () => {
    expect(paced(...steady(4, 1))).to.equal(0)
    expect(paced(...steady(5, 1))).to.equal(5000)
  })

  it('is unknown in the first quarter of a second of the process’s own time, however long a busy machine takes for it', () => {
    const pace = new QueuePace()
    pace.start()
    pace.sample(0, 0)
    for (let look = 1; look <= 5; look += 1) {
      expect(pace.expectedMs(100)).to.equal(0)
      pace.began()
      pace.sample(look * 200, look * 50)
    }
    expect(pace.expectedMs(100)).to.equal(20_000)
  })

  it('is unknown as long as the queue has not moved', () => {
    expect(paced(...steady(100, 0))).to.equal(0)
  })

  it('is based on the last second', () => {
    expect(paced(...steady(40, 10), ...steady(20, 1))).to.equal(5000)
  })

  it('counts at most 300 ms of a time in which the queue did not move', () => {
    const before = steady(14, 1)
    expect(paced(...before, ...steady(200, 0), 1)).to.equal((100 * (14 * 50 + 300)) / 15)
  })

  it('is unknown again once the queue was empty', () => {
    const pace = new QueuePace()
    pace.sample(0, 0)
    for (let at = 50; at <= 500; at += 50) {
      pace.began()
      pace.sample(at, at)
    }
    expect(pace.expectedMs(10)).to.equal(500)
    pace.start()
    expect(pace.expectedMs(10)).to.equal(0)
    pace.began()
    pace.sample(550, 550)
    expect(pace.expectedMs(10)).to.equal(0)
  })
})
