import { expect } from 'chai'
import { describe, it } from 'mocha'
import { asAppError } from '#http/errors.ts'
import { testContext } from '../support/context.ts'

describe('what failed while a request was answered', () => {
  const codeOf = (thrown: Error) => asAppError(testContext(), thrown, 'req_1', 'POST /').code

  it('is a fault of ours where a connection that we made was reset: who retries must be told to', () => {
    const reset = { code: 'ECONNRESET', errno: -104, syscall: 'read' }
    expect(codeOf(Object.assign(new Error('read ECONNRESET'), { ...reset, fatal: true }))).to.equal('internal_error')
    expect(codeOf(Object.assign(new Error('read ECONNRESET'), reset))).to.equal('internal_error')
  })

  it('is the sender’s where the request itself was cut off', () => {
    expect(codeOf(Object.assign(new Error('aborted'), { code: 'ECONNRESET' }))).to.equal('invalid_request')
  })
})
