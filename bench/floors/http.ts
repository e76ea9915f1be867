import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import Router, { type RouterContext } from '@koa/router'
import Koa from 'koa'
import { createPool, type PoolConnection, type RowDataPacket } from 'mysql2/promise'
import { answerOrders } from '../worker.ts'

export interface FloorOrder {
  readonly socketPath: string
  readonly database: string
  readonly appId: number
  readonly secret: string
}

/** The least code that does the durable work of a read, a checkout and a payment, on the product's own tables. */
answerOrders(async ({ socketPath, database, appId, secret }: FloorOrder): Promise<string> => {
  const pool = createPool({ socketPath, user: 'root', database, connectionLimit: 10, timezone: 'Z' })

  const verified = async (http: RouterContext): Promise<string> => {
    const chunks: Buffer[] = []
    for await (const chunk of http.req as AsyncIterable<Buffer>) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    const expected = createHmac('sha256', secret)
      .update(`${http.get('x-timestamp')}.${http.method}.${http.url}.`)
      .update(body)
      .digest()
    const given = Buffer.from(http.get('x-signature'), 'hex')
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) http.throw(401)
    return body.toString('utf8')
  }

  const inTransaction = async (work: (connection: PoolConnection) => Promise<void>): Promise<void> => {
    const connection = await pool.getConnection()
    try {
      await connection.query('START TRANSACTION')
      await work(connection)
      await connection.query('COMMIT')
    } finally {
      connection.release()
    }
  }

  const router = new Router()
  router.get('/api/v1/subscriptions/:ref', async (http) => {
    await verified(http)
    const [rows] = await pool.execute<RowDataPacket[]>(
      'SELECT * FROM subscriptions WHERE app_id = ? AND external_ref = ?',
      [appId, http.params['ref'] ?? ''],
    )
    if (!rows[0]) http.throw(404)
    http.body = { success: true, data: rows[0] }
  })

  router.post('/api/v1/checkout-sessions', async (http) => {
    const input = JSON.parse(await verified(http)) as { external_ref: string; success_url: string; cancel_url: string }
    const token = randomBytes(32).toString('hex')
    const now = new Date()
    await inTransaction(async (connection) => {
      const [{ insertId }] = (await connection.execute(
        `INSERT INTO transactions (app_id, end_user_id, external_ref, mode, plan_ref, is_trial, purpose, is_renewal, amount,
           amount_received, amount_refunded, amount_used, amount_left, currency, status, created_at, updated_at)
         VALUES (?, 1, ?, 'subscription', 'plan', 0, 'start', 0, 99000, 0, 0, 0, 0, 'VND', 'pending', ?, ?)`,
        [appId, input.external_ref, now, now],
      )) as unknown as [{ insertId: number }]
      await connection.execute(
        `INSERT INTO checkout_sessions (app_id, end_user_id, token, origin, transaction_id, success_url, cancel_url, expires_at, created_at)
         VALUES (?, 1, ?, 'checkout', ?, ?, ?, ?, ?)`,
        [appId, token, insertId, input.success_url, input.cancel_url, now, now],
      )
    })
    http.status = 201
    http.body = { success: true, data: { checkout_url: `http://127.0.0.1/checkout/${token}` } }
  })

  // Locks the subscription, records the payment, renews, completes the transaction, writes the event.
  router.post('/pay/:subscription/:transaction', async (http) => {
    const subscription = Number(http.params['subscription'])
    const transaction = Number(http.params['transaction'])
    const now = new Date()
    await inTransaction(async (connection) => {
      await connection.execute('SELECT * FROM subscriptions WHERE id = ? FOR UPDATE', [subscription])
      await connection.execute(
        `INSERT INTO payments (app_id, end_user_id, provider, reference, amount, amount_left, currency, paid_at, received_at)
         VALUES (?, 1, 'floor', ?, 99000, 0, 'VND', ?, ?)`,
        [appId, randomBytes(16).toString('hex'), now, now],
      )
      await connection.execute(
        `UPDATE subscriptions SET current_period_end = current_period_end + INTERVAL 1 MONTH, revision = revision + 1,
           updated_at = ? WHERE id = ?`,
        [now, subscription],
      )
      await connection.execute(
        `UPDATE transactions SET status = 'completed', amount_received = amount, amount_used = amount, completed_at = ?,
           updated_at = ? WHERE id = ?`,
        [now, now, transaction],
      )
      await connection.execute(
        `INSERT INTO events (app_id, event_type, transaction_id, body, delivery_status, attempts, retries_left, created_at, written_at)
         VALUES (?, 'subscription.updated', ?, ?, 'not_configured', 0, 5, ?, ?)`,
        [appId, transaction, EVENT_BODY, now, now],
      )
    })
    http.body = { redirect_url: 'https://shop.example/ok' }
  })

  const koa = new Koa()
  koa.use(router.routes() as unknown as Koa.Middleware)
  const server = koa.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

/** As long as a real one. */
const EVENT_BODY = Buffer.from(JSON.stringify({ event_type: 'subscription.updated', data: 'x'.repeat(450) }))
