import { expect } from 'chai'
import { describe, it } from 'mocha'
import { cardDuplicates } from './card-duplicates.ts'

describe('copies of card notifications at a running daemon', () => {
  it('20 payments, each reported 8 times, shuffled, over 16 connections to a daemon: 20 effects', async () => {
    const figures = await cardDuplicates({ payments: 20, copies: 8, connections: 16, daemons: 1, seed: 7 })
    expect(figures.answers).to.deep.equal({ '200 processed': 20, '200 duplicate': 140 })
  })
})
