import { expect } from 'chai'
import { describe, it } from 'mocha'
import { asAppError } from '#http/errors.ts'
import { testContext } from '../support/context.ts'

describe('an error while a request is answered', () => {
  const codeOf = (thrown: Error) => asAppError(testContext(), thrown, 'req_1', 'POST /').code

  it('is internal_error if an outgoing connection was reset, and service_unavailable if it was the database’s', () => {
    const reset = { code: 'ECONNRESET', errno: -104, syscall: 'read' }
    expect(codeOf(Object.assign(new Error('read ECONNRESET'), { ...reset, fatal: true }))).to.equal(
      'service_unavailable',
    )
    expect(codeOf(Object.assign(new Error('read ECONNRESET'), reset))).to.equal('internal_error')
  })

  it('is service_unavailable with Retry-After if the database is in conflict for too long, is read-only, or has no majority', () => {
    for (const errno of [1213, 1205, 1047, 1180, 1290]) {
      const error = asAppError(testContext(), Object.assign(new Error('busy'), { errno }), 'req_1', 'POST /')
      expect([error.code, error.status, error.headers]).to.deep.equal([
        'service_unavailable',
        503,
        { 'Retry-After': '1' },
      ])
    }
    expect(codeOf(Object.assign(new Error('no such table'), { errno: 1146 }))).to.equal('internal_error')
  })

  it('is invalid_request if the request itself was cut off', () => {
    expect(codeOf(Object.assign(new Error('aborted'), { code: 'ECONNRESET' }))).to.equal('invalid_request')
  })
})
