import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { schedule } from '#daemon/jobs.ts'
import { Scheduler } from '#daemon/scheduler.ts'
import { formatTimestamp, systemClock } from '#shared/time.ts'
import { DAILY } from '../support/factories.ts'
import { until } from '../support/until.ts'
import { aScene, type Scene } from '../renewals/scene.ts'
import { mailEnvironment } from './start-sweep.ts'

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
    const jobs = schedule({ sweepSeconds: 0.2 }).filter(({ name }) => names.includes(name))
    schedulers.push(new Scheduler(scene.ctx, mailEnvironment(scene), { jobs, firstHourlyMs: 0 }))
  }

  it('send each due mail once, also if two daemons run', async () => {
    scene = await aScene({ prices: [DAILY], start: formatTimestamp(systemClock.now()) })
    await scene.subscribeMany(3)
    startJobs('send-reminders')
    startJobs('send-reminders')
    await until(() => scene.inbox.mails.length >= 3)
    await scene.subscribe({ externalRef: 'user-4' })
    await until(() => scene.inbox.mails.length >= 4)
    for (const ref of ['user-1', 'user-2', 'user-3', 'user-4']) {
      expect(await scene.stages(ref), ref).to.deep.equal(['1'])
    }
  })

  it('store periods that ran out', async () => {
    scene = await aScene({ prices: [DAILY], start: '2026-03-01 10:00:00' })
    await scene.subscribe()
    startJobs('expire')
    await until(async () => (await scene.subscription()).status === 'expired')
  })
})
