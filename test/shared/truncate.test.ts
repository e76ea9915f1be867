import { expect } from 'chai'
import { describe, it } from 'mocha'
import { clipped } from '#shared/errors.ts'
import { truncate } from '#shared/truncate.ts'

describe('a text that is too long', () => {
  it('is cut between characters, and an emoji counts as one, as in a column', () => {
    const emoji = '😀'.repeat(501)
    expect(truncate(emoji, 500)).to.equal('😀'.repeat(500))
    expect(truncate(`a${emoji}`, 500)).to.equal(`a${'😀'.repeat(499)}`)
    expect(truncate('😀'.repeat(500), 500)).to.equal('😀'.repeat(500))
    expect(truncate('a'.repeat(501), 500)).to.equal('a'.repeat(500))
    expect(truncate('', 500)).to.equal('')
    expect(clipped(emoji)).to.equal(`${'😀'.repeat(199)}…`)
    expect(clipped('😀'.repeat(200))).to.equal('😀'.repeat(200))
  })
})
