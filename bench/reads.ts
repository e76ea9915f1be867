import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Koa from 'koa'
import { createPool, type RowDataPacket } from 'mysql2/promise'
import { Agent } from 'undici'
import { signRequest } from '#apps/authenticate.ts'
import { constantTimeEqual } from '#shared/crypto.ts'
import { unixSeconds } from '#shared/time.ts'
import type { TestService } from '../test/support/api.ts'
import { aPlan, anApp, aSubscription } from '../test/support/factories.ts'
import { testDatabase } from '../test/support/database.ts'

const REQUESTS = 3000
const CONNECTIONS = 32
const ROUNDS = 5

export interface ReadsBench {
  /** Requests a second: the whole service, and the least that could answer the same (signature check and one SELECT, by mysql2 itself). */
  readonly service: number
  readonly floor: number
  readonly share: number
}

/** `GET /api/v1/subscriptions/{ref}` against its floor, in rounds that take the two in turn. */
export async function benchReads(service: TestService, report: (line: string) => void): Promise<ReadsBench> {
  const app = await anApp(service.ctx)
  await aSubscription(service.ctx, app, await aPlan(service.ctx, app))
  const path = '/api/v1/subscriptions/user-1'
  const timestamp = String(unixSeconds(service.ctx.clock.now()))
  const signature = signRequest(app.secret, timestamp, { method: 'GET', target: path, body: Buffer.alloc(0) })
  const headers = { 'x-app-key': app.apiKey, 'x-timestamp': timestamp, 'x-signature': signature }
  const floor = await startFloor(app.secret)
  const rates = { service: [] as number[], floor: [] as number[] }
  for (let round = 0; round < ROUNDS; round += 1) {
    rates.floor.push(await rate(floor.url, path, headers))
    rates.service.push(await rate(service.url, path, headers))
  }
  await floor.stop()
  const result = {
    service: median(rates.service),
    floor: median(rates.floor),
    share: median(rates.service) / median(rates.floor),
  }
  report(
    `reads: ${result.service.toFixed(0)} a second, floor ${result.floor.toFixed(0)}, share ${result.share.toFixed(2)}`,
  )
  return result
}

async function startFloor(secret: string): Promise<{ url: string; stop(): Promise<void> }> {
  const pool = createPool({ ...targetOf(), connectionLimit: 10 })
  const koa = new Koa()
  koa.use(async (http) => {
    const expected = signRequest(secret, http.get('x-timestamp'), {
      method: http.method,
      target: http.url,
      body: Buffer.alloc(0),
    })
    if (!constantTimeEqual(expected, http.get('x-signature'))) http.throw(401)
    const [rows] = await pool.query<RowDataPacket[]>('SELECT * FROM subscriptions WHERE external_ref = ?', ['user-1'])
    http.body = { success: true, data: rows[0] }
  })
  const handle = koa.callback()
  const server = createServer((request, response) => void handle(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.close()
      server.closeAllConnections()
      await pool.end()
    },
  }
}

function targetOf(): { socketPath: string; user: string; database: string } {
  const { socketPath, name } = testDatabase()
  return { socketPath, user: 'root', database: name }
}

async function rate(origin: string, path: string, headers: Readonly<Record<string, string>>): Promise<number> {
  const agent = new Agent({ connections: CONNECTIONS })
  const startedMs = performance.now()
  let left = REQUESTS
  const work = async () => {
    while (left > 0) {
      left -= 1
      const answer = await agent.request({ origin, path, method: 'GET', headers })
      if (answer.statusCode !== 200) throw new Error(`answered ${answer.statusCode}`)
      await answer.body.dump()
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, work))
  const seconds = (performance.now() - startedMs) / 1000
  await agent.close()
  return REQUESTS / seconds
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN
}
