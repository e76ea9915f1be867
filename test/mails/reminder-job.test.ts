import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { schedule, startScheduler, type Scheduler } from '#daemon/scheduler.ts'
import { formatTimestamp, systemClock } from '#shared/time.ts'
import { MONTHLY } from '../support/factories.ts'
import { aScene, type Scene } from '../renewals/scene.ts'
import { mailEnvironment } from './start-sweep.ts'

const DAILY = { ...MONTHLY, interval_unit: 'day', interval_count: 1 }

describe('the jobs of reminders and expiry, in threads of their own', () => {
  let scene: Scene
  let schedulers: Scheduler[] = []

  afterEach(async () => {
    for (const scheduler of schedulers) await scheduler.stop(5000)
    schedulers = []
    await scene.stop()
  })

  /** The daemon's own schedule, in a hurry. */
  const startJobs = (...names: string[]) => {
    const jobs = schedule({ sweepSeconds: 0.05 }).filter(({ name }) => names.includes(name))
    schedulers.push(startScheduler(scene.ctx, mailEnvironment(scene), { jobs }))
  }

  it('send each due mail once, also if two daemons run', async () => {
    scene = await aScene({ prices: [DAILY], start: formatTimestamp(systemClock.now()) })
    for (const ref of ['user-1', 'user-2', 'user-3']) await scene.subscribe({ externalRef: ref })
    startJobs('send-reminders')
    startJobs('send-reminders')
    while (scene.inbox.mails.length < 3) await delay(20)
    await scene.subscribe({ externalRef: 'user-4' })
    while (scene.inbox.mails.length < 4) await delay(20)
    for (const ref of ['user-1', 'user-2', 'user-3', 'user-4']) {
      expect(await scene.stages(ref), ref).to.deep.equal(['1'])
    }
  })

  it('store periods that ran out', async () => {
    scene = await aScene({ prices: [DAILY], start: '2026-03-01 10:00:00' })
    await scene.subscribe()
    startJobs('expire')
    while ((await scene.subscription()).status !== 'expired') await delay(20)
  })
})
