import { connect } from 'node:net'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { startService } from '../support/api.ts'
import type { TestService } from '../support/api.ts'

describe('what is no HTTP request', () => {
  let service: TestService
  beforeEach(async () => {
    service = await startService()
  })
  afterEach(() => service.stop())

  const exchange = (bytes: string) =>
    new Promise<string>((resolve, reject) => {
      const { port } = new URL(service.url)
      const socket = connect(Number(port), '127.0.0.1', () => socket.write(bytes))
      let answer = ''
      socket.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1')))
      socket.on('close', () => resolve(answer))
      socket.on('error', reject)
    })

  const rows: [string, string, number][] = [
    ['words', 'hello there\r\n\r\n', 400],
    ['a method that does not exist', 'FROB /api/v1/plans HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    [
      'two lengths that differ',
      'POST /api/v1/plans HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd',
      400,
    ],
    [
      'a length beside a transfer encoding',
      'POST /api/v1/plans HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc',
      400,
    ],
    ['headers of 100 KB', `GET /api/v1/plans HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(100_000)}\r\n\r\n`, 431],
  ]
  for (const [title, bytes, status] of rows) {
    it(`${title}: ${status} in the error envelope, with X-Request-Id`, async () => {
      const answer = await exchange(bytes)
      expect(answer).to.match(new RegExp(`^HTTP/1\\.1 ${status} `))
      const { error } = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)) as {
        error: { code: string; request_id: string }
      }
      expect(error.code).to.equal('invalid_request')
      expect(answer).to.include(`X-Request-Id: ${error.request_id}`)
    })
  }

  it('an expectation that nobody knows is answered as any request, with X-Request-Id', async () => {
    const answer = await exchange('GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: banana\r\nConnection: close\r\n\r\n')
    expect(answer).to.match(/^HTTP\/1\.1 200 /)
    expect(answer).to.match(/\r\nX-Request-Id: req_/)
  })
})
