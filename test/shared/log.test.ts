import { expect } from 'chai'
import { describe, it } from 'mocha'
import { describeError } from '#shared/log.ts'

describe('what the log says of an error', () => {
  it('is its message, code and number, and never the statement that it came with', () => {
    const error = Object.assign(new Error('Deadlock found'), {
      code: 'ER_LOCK_DEADLOCK',
      errno: 1213,
      sql: 'SELECT secret',
    })
    expect(describeError(error)).to.include({
      name: 'Error',
      message: 'Deadlock found',
      code: 'ER_LOCK_DEADLOCK',
      errno: 1213,
    })
    expect(JSON.stringify(describeError(error))).to.not.include('secret')
  })

  it('is the same if it came from another thread as a plain object', () => {
    expect(describeError({ message: 'Deadlock found', errno: 1213 })).to.include({
      message: 'Deadlock found',
      errno: 1213,
    })
  })

  it('is a word for anything else', () => {
    expect(
      [{ sql: 'SELECT secret' }, null, undefined, 'gone'].map((thrown) => describeError(thrown)['message']),
    ).to.deep.equal(['an object that is no error', 'null', 'undefined', 'gone'])
  })
})
