import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { isBlockedAddress } from '#http/outbound/blocked-address.ts'
import { GuardedClient } from '#http/outbound/guarded-client.ts'
import { EndpointError, requestEndpoint } from '#http/outbound/request-endpoint.ts'
import { cleanText, HEAD_BYTES, type PostOutcome } from '#http/outbound/exchange.ts'
import type { GuardOptions } from '#http/outbound/guarded-connector.ts'
import { standStill } from '../support/stand-still.ts'

const BLOCKED = [
  ...[
    '0.0.0.0',
    '0.1.2.3',
    '10.0.0.0',
    '10.0.0.1',
    '10.255.255.255',
    '100.64.0.1',
    '100.100.100.200',
    '100.127.255.255',
  ],
  ...['127.0.0.0', '127.0.0.1', '127.1.2.3', '127.255.255.255', '168.63.129.16', '169.254.0.1', '169.254.169.254'],
  ...['172.16.0.0', '172.16.0.1', '172.31.255.255', '192.0.0.1', '192.0.0.192', '192.0.2.1', '192.88.99.1'],
  ...['192.168.0.1', '192.168.255.255', '198.18.0.1', '198.19.255.255', '198.51.100.7', '203.0.113.9', '224.0.0.1'],
  ...['239.255.255.255', '240.0.0.1', '255.255.255.255'],
  ...['::', '::1', '::7f00:1', '::127.0.0.1', '::a9fe:a9fe', '::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:10.0.0.1'],
  ...[
    '::ffff:a9fe:a9fe',
    '::ffff:8.8.8.8',
    '0:0:0:0:0:0:0:1',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b::127.0.0.1',
    '64:ff9b::a00:1',
  ],
  ...['64:ff9b:1::1', '100::1', '2001::1', '2001:0:7f00:1::', '2001:db8::1', '2002:a9fe:a9fe::1', '2002:7f00:1::'],
  ...['3fff::1', '5f00::1', 'fc00::1', 'fd00:ec2::254', 'fdff:ffff::1', 'fe80::1', 'fe80::1%lo', 'fec0::1', 'ff02::1'],
  ...['', 'localhost', '127.1', '0x7f.1', '2130706433', '1.2.3', '1.2.3.4.5', '[::1]', 'fe80', ' 8.8.8.8', '8.8.8.8 '],
]
const PUBLIC = [
  ...[
    '1.1.1.1',
    '8.8.8.8',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.1',
  ],
  ...[
    '168.63.129.17',
    '169.253.255.255',
    '169.255.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '192.0.1.1',
    '192.167.255.255',
  ],
  ...['192.169.0.0', '198.17.255.255', '198.20.0.0', '223.255.255.255', '2001:4860:4860::8888', '2400:cb00::1'],
  ...['2606:4700:4700::1111', '2a00:1450::1', '64:ff9b::8.8.8.8', '64:ff9b::808:808'],
]

describe('the guard of outgoing requests', () => {
  const closers: (() => unknown)[] = []
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close()
  })

  async function listen(answer: (socket: Socket) => void): Promise<{ port: number; connections: () => number }> {
    let connections = 0
    const sockets = new Set<Socket>()
    const server: Server = createServer((socket) => {
      connections += 1
      sockets.add(socket)
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
      answer(socket)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    closers.push(async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    })
    return { port: (server.address() as AddressInfo).port, connections: () => connections }
  }

  function client(options: Partial<GuardOptions> = {}): GuardedClient {
    const opened = new GuardedClient({ allowInsecure: true, ...options })
    closers.push(() => opened.close())
    return opened
  }

  function post(opened: GuardedClient, url: string, deadlineMs = 3000): Promise<PostOutcome> {
    return opened.post({
      ownerId: 1,
      url,
      headers: { 'content-type': 'application/json' },
      body: Buffer.from('{}'),
      deadlineMs,
    })
  }

  /** Answers a request with fixed bytes once its head has arrived, and closes. */
  const answering = (bytes: string | Buffer) => (socket: Socket) => socket.once('data', () => socket.end(bytes))

  /** The outcome of a post to a receiver that answers with these bytes. */
  async function outcomeOf(bytes: string | Buffer): Promise<PostOutcome> {
    const { port } = await listen(answering(bytes))
    return post(client(), `http://127.0.0.1:${port}/hook`)
  }

  describe('private receivers', () => {
    for (const address of BLOCKED)
      it(`refuses ${JSON.stringify(address)}`, () => expect(isBlockedAddress(address)).to.equal(true))
    for (const address of PUBLIC) it(`allows ${address}`, () => expect(isBlockedAddress(address)).to.equal(false))

    const forms = [
      'https://127.0.0.1:PORT/',
      'https://127.1:PORT/',
      'https://0x7f.1:PORT/',
      'https://2130706433:PORT/',
      'https://0177.0.0.1:PORT/',
      'https://127.0.0.1.:PORT/',
      'https://１２７.0.0.1:PORT/',
      'https://[::1]:PORT/',
      'https://[::ffff:127.0.0.1]:PORT/',
      'https://[::7f00:1]:PORT/',
      'https://[64:ff9b::7f00:1]:PORT/',
      'https://0:PORT/',
      'https://localhost:PORT/',
    ]
    for (const form of forms) {
      it(`never connects to ${form}`, async () => {
        const { port, connections } = await listen((socket) => socket.end())
        const outcome = await post(client({ allowInsecure: false }), form.replace('PORT', String(port)))
        expect(outcome).to.include({ httpStatus: null, failure: 'blocked_address' })
        expect(connections()).to.equal(0)
      })
    }

    it('refuses a name with one private address, even if its others are public', async () => {
      const { port, connections } = await listen((socket) => socket.end())
      const opened = client({ allowInsecure: false, resolve: () => Promise.resolve(['8.8.8.8', '127.0.0.1']) })
      expect(await post(opened, `https://shop.example:${port}/`)).to.include({ failure: 'blocked_address' })
      expect(connections()).to.equal(0)
    })

    it('resolves a name once and connects to the checked address, so that DNS rebinding gains nothing', async () => {
      const { port, connections } = await listen((socket) => socket.end())
      const answers = [['192.0.2.1'], ['127.0.0.1']]
      let asked = 0
      const resolve = () => Promise.resolve(answers[Math.min(asked++, 1)]!)
      const opened = client({ allowInsecure: false, resolve, isBlocked: (address) => address === '127.0.0.1' })
      expect((await post(opened, `https://shop.example:${port}/`, 300)).httpStatus).to.equal(null)
      expect(asked).to.equal(1)
      expect(await post(opened, `https://shop.example:${port}/`)).to.include({ failure: 'blocked_address' })
      expect(connections()).to.equal(0)
    })

    it('checks the address of the connection itself, and sends nothing to a wrong one', async () => {
      let bytes = 0
      const { port, connections } = await listen((socket) => socket.on('data', (chunk) => (bytes += chunk.length)))
      let checks = 0
      // As if the address had passed the check and a different one were connected.
      const isBlocked = (): boolean => (checks += 1) === 2
      const outcome = await post(client({ isBlocked }), `http://127.0.0.1:${port}/`)
      expect(outcome).to.include({ httpStatus: null, failure: 'blocked_address' })
      expect(connections()).to.equal(1)
      expect(bytes).to.equal(0)
    })

    it('fails closed if a name has no address', async () => {
      const opened = client({ allowInsecure: false, resolve: () => Promise.resolve([]) })
      expect(await post(opened, 'https://nowhere.example/')).to.include({ httpStatus: null, failure: 'unknown_host' })
    })

    it('fails closed if a name cannot be resolved', async () => {
      const resolve = () => Promise.reject(Object.assign(new Error('no such host'), { code: 'ENOTFOUND' }))
      const opened = client({ allowInsecure: false, resolve })
      expect(await post(opened, 'https://nowhere.example/')).to.include({ httpStatus: null, failure: 'unknown_host' })
    })
  })

  describe('addresses', () => {
    const refused = [
      ['http://shop.example/', 'insecure_url'],
      ['https://user@shop.example/', 'invalid_url'],
      ['https://user:password@shop.example/', 'invalid_url'],
      ['ftp://shop.example/', 'invalid_url'],
      ['unix:/var/run/docker.sock', 'invalid_url'],
      ['file:///etc/passwd', 'invalid_url'],
      ['not an address', 'invalid_url'],
      ['', 'invalid_url'],
    ]
    for (const [url, failure] of refused) {
      it(`refuses ${JSON.stringify(url)} as ${failure!}`, async () => {
        const resolve = () => Promise.reject(new Error('nothing may be resolved'))
        expect(await post(client({ allowInsecure: false, resolve }), url!)).to.include({ httpStatus: null, failure })
      })
    }

    it('does not fall back to plain text for an https address', async () => {
      const { port } = await listen((socket) => socket.on('data', () => socket.end('HTTP/1.1 200 OK\r\n\r\n')))
      expect(await post(client(), `https://127.0.0.1:${port}/`)).to.include({ httpStatus: null, failure: 'tls_failed' })
    })

    it('reports connection_refused if nobody listens', async () => {
      const { port } = await listen((socket) => socket.end())
      await closers.pop()!()
      expect(await post(client(), `http://127.0.0.1:${port}/`)).to.include({ failure: 'connection_refused' })
    })
  })

  describe('what receivers answer', () => {
    it('returns the status and the beginning of the body', async () => {
      const outcome = await outcomeOf('HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello')
      expect(outcome).to.include({ httpStatus: 201, failure: null, responseHead: 'hello' })
    })

    it('accepts 204 without a body', async () => {
      expect(await outcomeOf('HTTP/1.1 204 No Content\r\n\r\n')).to.include({ httpStatus: 204, responseHead: '' })
    })

    it('accepts 304', async () => {
      expect(await outcomeOf('HTTP/1.1 304 Not Modified\r\n\r\n')).to.include({ httpStatus: 304, failure: null })
    })

    it('never follows a redirect', async () => {
      const trap = await listen(answering('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'))
      for (const status of [301, 302, 303, 307, 308]) {
        const location = `http://127.0.0.1:${trap.port}/`
        const outcome = await outcomeOf(
          `HTTP/1.1 ${status} Moved\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n`,
        )
        expect(outcome).to.include({ httpStatus: status, failure: null })
      }
      expect(trap.connections()).to.equal(0)
    })

    it('reads no more than it needs of an endless body', async () => {
      let written = 0
      const { port } = await listen((socket) =>
        socket.once('data', () => {
          socket.write('HTTP/1.1 200 OK\r\n\r\n')
          const pour = (): void => {
            while (!socket.destroyed && socket.write(Buffer.alloc(64 * 1024, 'x'))) written += 1
          }
          socket.on('drain', pour)
          pour()
        }),
      )
      const outcome = await post(client(), `http://127.0.0.1:${port}/`)
      expect(outcome).to.include({ httpStatus: 200, failure: null })
      expect(outcome.responseHead).to.equal('x'.repeat(HEAD_BYTES))
      expect(outcome.durationMs).to.be.lessThan(10_000)
      expect(written).to.be.lessThan(1000)
    })

    it('does not decompress a body', async () => {
      const bomb = gzipSync(Buffer.alloc(10_000_000))
      const head = `HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`
      const outcome = await outcomeOf(Buffer.concat([Buffer.from(head), bomb]))
      expect(outcome.httpStatus).to.equal(200)
      expect(Buffer.byteLength(outcome.responseHead!)).to.be.at.most(HEAD_BYTES)
    })

    it('keeps clean UTF-8 of at most 2 KiB', async () => {
      const body = Buffer.concat([Buffer.from([0, 0xff, 0xfe, 0x1b, 0x80, 10, 13, 0xc3]), Buffer.alloc(5000, '\u20ac')])
      const outcome = await outcomeOf(
        Buffer.concat([Buffer.from(`HTTP/1.1 500 Oops\r\nContent-Length: ${body.length}\r\n\r\n`), body]),
      )
      expect(outcome.httpStatus).to.equal(500)
      expect(Buffer.byteLength(outcome.responseHead!)).to.be.at.most(HEAD_BYTES)
      expect(outcome.responseHead!.isWellFormed()).to.equal(true)
      expect(outcome.responseHead).to.not.match(/[^\P{Cc}\n\t]/u)
    })

    it('reports the status of a 2xx whose body is cut off', async () => {
      const { port } = await listen((socket) =>
        socket.once('data', () => {
          socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\npartial', () =>
            setImmediate(() => socket.resetAndDestroy()),
          )
        }),
      )
      const outcome = await post(client(), `http://127.0.0.1:${port}/`)
      // The kernel may drop what was written before the reset; then there is no answer at all.
      expect([200, null]).to.include(outcome.httpStatus)
      if (outcome.httpStatus === null) expect(outcome.failure).to.equal('connection_lost')
    })

    const invalid = [
      ['HTTP/0.9', 'hello\r\n'],
      ['a header of a megabyte', `HTTP/1.1 200 OK\r\nX-Big: ${'x'.repeat(1_000_000)}\r\n\r\n`],
      ['NULs in a header', 'HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n'],
      ['a protocol switch', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'],
      ['a flood of informational answers', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(10_000)],
      ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx'],
      ['garbage', Buffer.from('\x16\x03\x01\x02\x00\x01\x00\x01')],
    ] as const
    for (const [what, bytes] of invalid) {
      it(`accepts no answer with ${what}`, async () => {
        const outcome = await outcomeOf(bytes)
        expect(outcome.httpStatus).to.equal(null)
        expect(['invalid_response', 'connection_lost']).to.include(outcome.failure)
      })
    }

    it('accepts no answer from a receiver that closes the connection', async () => {
      expect(await outcomeOf('')).to.include({ httpStatus: null, failure: 'connection_lost' })
    })

    it('ends at the deadline if nothing arrives', async () => {
      const { port } = await listen(() => undefined)
      const outcome = await post(client(), `http://127.0.0.1:${port}/`, 200)
      expect(outcome).to.include({ httpStatus: null, failure: 'timeout' })
      expect(outcome.durationMs).to.be.within(190, 10_000)
    })

    it('counts an answer that comes soon after this process itself stood still beyond the deadline', async () => {
      const { port } = await listen(answering('HTTP/1.1 204 No Content\r\n\r\n'))
      const outcome = post(client(), `http://127.0.0.1:${port}/`, 300)
      await standStill(1000)
      expect(await outcome).to.include({ httpStatus: 204, failure: null })
    })

    it('ends at the deadline if the head arrives byte by byte', async () => {
      const { port } = await listen((socket) => {
        const drip = setInterval(() => socket.write('H'), 20)
        socket.on('close', () => clearInterval(drip))
      })
      const outcome = await post(client(), `http://127.0.0.1:${port}/`, 300)
      expect(outcome.httpStatus).to.equal(null)
      expect(outcome.durationMs).to.be.lessThan(10_000)
    })

    it('times out if the body arrives byte by byte beyond the deadline, and reports the status', async () => {
      const { port } = await listen((socket) => {
        socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\n\r\n'))
        const drip = setInterval(() => socket.write('x'), 20)
        socket.on('close', () => clearInterval(drip))
      })
      const outcome = await post(client(), `http://127.0.0.1:${port}/`, 300)
      expect(outcome).to.include({ httpStatus: 200, failure: 'timeout' })
      expect(outcome.durationMs).to.be.within(290, 10_000)
    })

    it('ends early when it is interrupted, and sends nothing after that', async () => {
      const { port, connections } = await listen(() => undefined)
      const url = `http://127.0.0.1:${port}/`
      const opened = client()
      const outcome = post(opened, url)
      setImmediate(() => opened.interrupt())
      expect(await outcome).to.include({ httpStatus: null, failure: 'interrupted' })
      expect(await post(opened, url)).to.include({ httpStatus: null, failure: 'interrupted' })
      expect(connections()).to.be.at.most(1)
    })
  })

  describe('connections', () => {
    const keepAlive = (socket: Socket) =>
      socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'))
    const request = { headers: {}, body: Buffer.from('{}'), deadlineMs: 3000 }

    it('are reused for later posts of the same owner', async () => {
      const { port, connections } = await listen(keepAlive)
      const opened = client()
      const url = `http://127.0.0.1:${port}/`
      for (let i = 0; i < 20; i += 1) await opened.post({ ...request, ownerId: 1, url })
      expect(connections()).to.be.at.most(2)
    })

    it('are never shared between owners', async () => {
      const { port, connections } = await listen(keepAlive)
      const opened = client()
      const url = `http://127.0.0.1:${port}/`
      for (const ownerId of [1, 2, 3]) await opened.post({ ...request, ownerId, url })
      expect(connections()).to.equal(3)
    })
  })

  it('cuts text at a character, not in the middle of one', () => {
    expect(cleanText(Buffer.from('\u20ac\u20ac\u20ac'), 7)).to.equal('\u20ac\u20ac')
    expect(cleanText(Buffer.from([0xff, 0xff, 0xff]), 3)).to.equal('\ufffd')
    expect(cleanText(Buffer.from('a\u0000b\u001bc\r\n\td'), 100)).to.equal('abc\n\td')
  })

  describe('fixed endpoints', () => {
    it('return whatever status they answer', async () => {
      const { port } = await listen(
        answering('HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nX-Reason: key\r\n\r\nno'),
      )
      const answer = await requestEndpoint({
        method: 'PUT',
        url: `http://127.0.0.1:${port}/a?b=c`,
        body: '{}',
        deadlineMs: 2000,
      })
      expect(answer).to.include({ status: 401, body: 'no' })
      expect(answer.headers['x-reason']).to.equal('key')
    })

    it('fail at the deadline if they do not answer', async () => {
      const { port } = await listen(() => undefined)
      const failure = await requestEndpoint({ method: 'GET', url: `http://127.0.0.1:${port}/`, deadlineMs: 100 }).catch(
        (error: unknown) => error,
      )
      expect(failure).to.be.instanceOf(EndpointError)
      expect((failure as EndpointError).failure).to.equal('timeout')
    })

    it('may answer soon after this process itself stood still beyond the deadline', async () => {
      const { port } = await listen(answering('HTTP/1.1 204 No Content\r\n\r\n'))
      const answer = requestEndpoint({ method: 'GET', url: `http://127.0.0.1:${port}/`, deadlineMs: 300 })
      await standStill(1000)
      expect(await answer).to.include({ status: 204 })
    })

    it('fail if their answer is too large', async () => {
      const { port } = await listen(answering(`HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(2_000_000)}`))
      const failure = await requestEndpoint({
        method: 'GET',
        url: `http://127.0.0.1:${port}/`,
        deadlineMs: 2000,
      }).catch((error: unknown) => error)
      expect((failure as EndpointError).failure).to.equal('invalid_response')
    })
  })
})
