import { expect } from 'chai'
import { describe, it } from 'mocha'
import { UnknownCommit } from '#db/database-error.ts'
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

  const BUSY = [
    ...[
      1213, 1205, 1180, 1290, 1036, 1015, 1792, 3989, 3032, 1040, 1203, 1226, 2003, 3169, 1317, 3024, 1969, 3797, 3798,
      3799,
    ].map((errno) => Object.assign(new Error('busy'), { errno })),
    Object.assign(new Error('WSREP has not yet prepared node for application use'), { errno: 1047 }),
    new UnknownCommit(new Error('Query execution was interrupted')),
    ...['EAGAIN', 'EHOSTUNREACH', 'EAI_AGAIN'].map((code) =>
      Object.assign(new Error(`connect ${code}`), { code, errno: -11, fatal: true }),
    ),
  ]

  it('is service_unavailable with Retry-After if the database is in conflict, read-only, offline, full, too slow, without a majority, or a statement was killed', () => {
    for (const busy of BUSY) {
      const error = asAppError(testContext(), busy, 'req_1', 'POST /')
      expect([error.code, error.status, error.headers]).to.deep.equal([
        'service_unavailable',
        503,
        { 'Retry-After': '1' },
      ])
    }
    expect(codeOf(Object.assign(new Error('no such table'), { errno: 1146 }))).to.equal('internal_error')
    // Of a server that is no node of Galera, a command that it does not know.
    expect(codeOf(Object.assign(new Error('Unknown command'), { errno: 1047 }))).to.equal('internal_error')
  })

  it('is invalid_request if the request itself was cut off', () => {
    expect(codeOf(Object.assign(new Error('aborted'), { code: 'ECONNRESET' }))).to.equal('invalid_request')
  })
})
