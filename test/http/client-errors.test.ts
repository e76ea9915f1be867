import { once } from 'node:events'
import { createServer, type Server, type ServerOptions } from 'node:http'
import { connect, type Socket } from 'node:net'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { answerClientErrors } from '#daemon/client-errors.ts'
import { startService, type TestService } from '../support/api.ts'
import { listen } from '../support/http-server.ts'
import { until } from '../support/until.ts'

describe('a malformed HTTP request', () => {
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
    ['no host', 'GET /api/v1/plans HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    ['a tunnel', 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n', 400],
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

  describe('is answered on a socket that is free at once', () => {
    let server: Server
    let socket: Socket

    const start = async (limits: ServerOptions = {}): Promise<void> => {
      server = createServer(limits)
      answerClientErrors(server)
      server.on('request', (request, response) => service.server.emit('request', request, response))
      const port = await listen(server)
      // This client never closes its side.
      socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    }

    afterEach(() => {
      socket.destroy()
      server.close()
    })

    const SHORT = { headersTimeout: 200, requestTimeout: 200, connectionsCheckingInterval: 50 }
    for (const [what, bytes, status, limits] of [
      ['headers that never end', 'GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow', 408, SHORT],
      ['a body that never ends', 'POST /api/v1/plans HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc', 408, SHORT],
      ['large headers', `GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(20_000)}`, 431, {}],
      ['words', 'hello there\r\n\r\n', 400, {}],
    ] as const) {
      it(`${what}: ${status}, though the client leaves it open`, async () => {
        await start(limits)
        let answer = ''
        socket.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1')))
        socket.write(bytes)
        await once(socket, 'end')
        expect(answer).to.match(new RegExp(`^HTTP/1\\.1 ${status} `))
        await until(async () => (await connectionsOf(server)) === 0)
        expect(socket.writableEnded, 'the client has not closed').to.equal(false)
      })
    }

    it('words: 400, though the answer cannot be sent', async () => {
      await start()
      const accepted = (await once(server, 'connection')) as [Socket]
      // As if behind data that the client has not read.
      accepted[0].cork()
      socket.write('hello there\r\n\r\n')
      await once(accepted[0], 'close')
      expect(socket.writableEnded, 'the client has not closed').to.equal(false)
    })
  })

  it('with an unknown expectation is answered like any other, with X-Request-Id', async () => {
    const answer = await exchange('GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: banana\r\nConnection: close\r\n\r\n')
    expect(answer).to.match(/^HTTP\/1\.1 200 /)
    expect(answer).to.match(/\r\nX-Request-Id: req_/)
  })
})

function connectionsOf(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.getConnections((error, count) => (error ? reject(error) : resolve(count)))
  })
}
