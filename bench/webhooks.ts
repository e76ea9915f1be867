import { join } from 'node:path'
import { events } from '#webhooks/store.ts'
import { paid } from '../test/support/factories.ts'
import { testEnvironment } from '../test/support/context.ts'
import type { QueueOrder } from './floors/bullmq.ts'
import type { SendOrder } from './floors/undici.ts'
import { profiled } from './profiled.ts'
import { startRedis } from './redis.ts'
import { inRounds, type Bench } from './row.ts'
import { copyRow, openShop } from './shop.ts'
import { startWorker } from './worker.ts'
import type { ReceiverOrder, ReceiverState } from './workers/receiver.ts'

const COUNT = 20_000
const QUICK = 100
/** Rounds that warm up besides the first: V8 has compiled our sender for good after 60,000 webhooks, and the floor after 20,000. */
const WARM_UP = 3

/** Due webhooks of one app, signed and written down, to a receiver that answers at once. */
export const webhookBench: Bench = {
  rows: [
    {
      name: 'webhooks',
      what: 'webhooks from a backlog, signed, durable',
      floor: 'undici alone, 64 at once',
      unit: 'a second',
      judged: 'share',
      must: 0.35,
      goal: 0.6,
    },
    {
      name: 'webhooks-bullmq',
      what: 'the same',
      floor: 'BullMQ with undici on Redis (AOF, each second)',
      unit: 'a second',
      judged: 'share',
      must: 1,
      goal: 2,
    },
  ],
  async run(options) {
    const count = options.isQuick ? QUICK : COUNT
    const receiver = startWorker<ReceiverOrder, ReceiverState>(join('workers', 'receiver.ts'))
    const { url } = await receiver.ask({ secret: '' })
    const shop = await openShop({ webhookUrl: url })
    await paid(shop.ctx, shop.app, { price_id: shop.price })
    const [event] = await shop.ctx.db.all(events, 'ORDER BY id LIMIT 1')
    if (!event) throw new Error('the payment wrote no event')
    await shop.ctx.db.query('DELETE FROM events')
    const secret = shop.app.webhookSecret!
    const order: SendOrder = { url, secret, body: event.body.toString('utf8'), count }
    const redis = await startRedis()
    const sides = {
      ours: startWorker<'deliver', number>(
        join('workers', 'deliver.ts'),
        testEnvironment({ BILLING_LOG_LEVEL: 'info', ...profiled('sender') }),
      ),
      undici: startWorker<SendOrder, number>(join('floors', 'undici.ts')),
      bullmq: startWorker<QueueOrder, number>(join('floors', 'bullmq.ts')),
    }
    /** Deliveries a second. */
    const measure = async (send: () => Promise<number>): Promise<number> => {
      await receiver.ask({ secret })
      const ms = await send()
      const { genuine, forged } = await receiver.ask({ secret })
      if (genuine !== count || forged > 0) throw new Error(`${genuine} webhooks of ${count} came, and ${forged} forged`)
      return (count / ms) * 1000
    }
    try {
      const round = async () => {
        const now = shop.ctx.clock.now()
        await copyRow(shop.ctx.db, events, event, count, () => ({ nextAttemptAt: now, writtenAt: now }))
        return {
          undici: await measure(() => sides.undici.ask(order)),
          ours: await measure(() => sides.ours.ask('deliver')),
          bullmq:
            typeof redis === 'string'
              ? null
              : await measure(() =>
                  sides.bullmq.ask({ ...order, redisSocket: redis.socket, packages: redis.packages }),
                ),
        }
      }
      for (let warm = 0; warm < WARM_UP && !options.isQuick; warm += 1) await round()
      const rounds = await inRounds(options, round)
      return {
        webhooks: { rounds: rounds.map(({ ours, undici }) => ({ ours, floor: undici })) },
        'webhooks-bullmq':
          typeof redis === 'string'
            ? { skipped: redis }
            : { rounds: rounds.map(({ ours, bullmq }) => ({ ours, floor: bullmq })) },
      }
    } finally {
      await Promise.all([receiver, ...Object.values(sides)].map((worker) => worker.stop()))
      if (typeof redis !== 'string') await redis.stop()
    }
  },
}
