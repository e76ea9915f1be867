import { expect } from 'chai'
import { describe, it } from 'mocha'
import { MUTANTS } from '../histories/mutants.ts'
import { allHistories } from './histories.ts'
import { mutants } from './mutants.ts'

describe('every short history', () => {
  it('of six steps does what the rules say', async () => {
    const figures = await allHistories({ depth: 6, seed: 1 })
    expect(figures.histories).to.be.above(5_000_000)
  })

  it('of the same length is taken, whatever the order', async () => {
    const [one, other] = await Promise.all([1, 2].map((seed) => allHistories({ depth: 4, seed })))
    expect(one!.histories).to.equal(other!.histories)
    expect(one!.states).to.equal(other!.states)
  })

  it('finds a wrong line of the rules: each of those that four steps can show', async () => {
    expect(MUTANTS.length).to.be.at.least(30)
    const shallow = MUTANTS.filter(({ name }) => !DEEPER.includes(name))
    const figures = await mutants({ mutants: shallow, mostDepth: 4 })
    expect(figures.mutants).to.be.at.least(25)
  })
})

/** These need five to seven steps; `npm run trials mutants` finds them. */
const DEEPER: readonly string[] = [
  'what an operator accepts is superseded',
  'a payment counts from when it was opened',
  'an expired period is extended',
  'a late renewal brings its old plan back',
  'a renewal after a switch is superseded',
  'an older change counts',
  'no times are equal',
  'sixty seconds are too many',
  'an earlier payment counts',
  'a renewal extends only its own plan',
  'a renewal chooses the price',
  'a switch is a purchase',
  'a switch to another price of a plan is no purchase',
  'a switch to another plan leaves it bought',
  'an end is no plan choice',
  'an extension is a plan choice',
  'a second refund replaces the first',
  'a repeated refund takes the purchase',
]
