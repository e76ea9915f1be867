import { expect } from 'chai'
import { describe, it } from 'mocha'
import { BoundedMap } from '#shared/bounded-map.ts'

describe('a bounded map', () => {
  it('drops the entry that was set longest ago when one more is set, and reports its value', () => {
    const dropped: number[] = []
    const map = new BoundedMap<string, number>(2, (value) => dropped.push(value))
    map.set('a', 1).set('b', 2)
    expect(dropped).to.deep.equal([])
    map.set('c', 3)
    expect([[...map], dropped]).to.deep.equal([Object.entries({ b: 2, c: 3 }), [1]])
  })

  it('keeps an entry that is set again for longer, and drops none for it', () => {
    const map = new BoundedMap<string, number>(2)
    map.set('a', 1).set('b', 2).set('a', 3)
    expect([...map]).to.deep.equal(Object.entries({ b: 2, a: 3 }))
    expect([...map.set('c', 4).keys()]).to.deep.equal(['a', 'c'])
  })

  it('creates a value once, and none where that fails', () => {
    const map = new BoundedMap<string, string>(2)
    const fails = (): string => {
      throw new Error('no value')
    }
    expect(() => map.getOrCreate('a', fails)).to.throw('no value')
    expect(map.has('a')).to.equal(false)
    expect(map.getOrCreate('a', () => '')).to.equal('')
    expect(map.getOrCreate('a', fails)).to.equal('')
  })
})
