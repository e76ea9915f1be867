import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import Bree from 'bree'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import sinon from 'sinon'
import { listLastJobRuns, type JobRun } from '#upkeep/job-runs/store.ts'
import { schedule, type ScheduledJob } from '#daemon/jobs.ts'
import { Scheduler, type SchedulerOptions } from '#daemon/scheduler.ts'
import { inTransaction } from '#commands/transaction.ts'
import { systemClock } from '#shared/time.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import { listDeliveries } from '#webhooks/list-deliveries.ts'
import { testContext, testEnvironment, type TestContext } from '../support/context.ts'
import { aCompletion, anApp } from '../support/factories.ts'
import { Receiver } from '../support/receiver.ts'
import { standStill } from '../support/stand-still.ts'
import { until } from '../support/until.ts'

describe('the scheduler', () => {
  let ctx: TestContext
  const running: Scheduler[] = []

  beforeEach(() => {
    ctx = testContext()
  })
  afterEach(async () => {
    sinon.restore()
    for (const scheduler of running.splice(0)) await scheduler.stop(2000)
  })

  function start(names: readonly string[], options: SchedulerOptions & Partial<ScheduledJob> = {}): Scheduler {
    const { longestSweepMs = null, memoryMb = 64, sweep, ...rest } = options
    const jobs = names.map((name) => ({
      name,
      longestSweepMs: name === 'lives' ? null : longestSweepMs,
      memoryMb,
      youngMb: 16,
      ...(sweep ? { sweep } : {}),
    }))
    const root = join(import.meta.dirname, 'jobs')
    const scheduler = new Scheduler(ctx, testEnvironment(), { jobs, root, heartbeatMs: 250, restartMs: 20, ...rest })
    running.push(scheduler)
    return scheduler
  }

  function failures(job: string): string[] {
    return ctx.counted
      .filter(({ metric, labels }) => metric === 'job_failures_total' && labels['job'] === job)
      .map(({ labels }) => labels['reason']!)
  }

  async function lastRun(job: string): Promise<JobRun> {
    await until(async () => (await listLastJobRuns(ctx.db)).some((run) => run.job === job))
    return (await listLastJobRuns(ctx.db)).find((run) => run.job === job)!
  }

  it('schedules every file of jobs/', () => {
    const files = readdirSync(join(import.meta.dirname, '..', '..', 'jobs')).filter((file) => file !== 'run-job.ts')
    expect(schedule({ sweepSeconds: 60 }).map(({ name }) => `${name}.ts`)).to.have.members(files)
  })

  it('sweeps as often as the settings say', () => {
    const everyMs = schedule({ sweepSeconds: 0.5 }).map((job) => job.sweep?.everyMs)
    // Webhooks and alerts go on by themselves.
    expect(everyMs).to.have.members([undefined, undefined, 500, 500, 500])
  })

  const failing = [
    { job: 'throws', reason: 'failed', message: 'the job broke' },
    { job: 'rejects', reason: 'failed', message: 'nobody caught this' },
    { job: 'ends', reason: 'ended', message: 'the job ended by itself' },
    { job: 'grows', reason: 'out_of_memory', message: /memory/ },
    { job: 'loops', reason: 'hung', message: /no heartbeat/, heartbeatMs: 50 },
    { job: 'never-ends', reason: 'overdue', message: /more than 100 ms/, longestSweepMs: 100 },
  ]
  for (const { job, reason, message, ...options } of failing) {
    it(`restarts a job that ${job.replaceAll('-', ' ')}, counts it as ${reason}, records it, and continues`, async () => {
      const { heartbeats } = start([job, 'lives'], { heartbeatMs: 60_000, ...options })
      await until(() => failures(job).length >= 2)
      expect(new Set(failures(job))).to.deep.equal(new Set([reason]))
      // A busy machine may starve a thread for that long.
      expect(failures('lives').filter((other) => other !== 'hung')).to.deep.equal([])
      ctx.clock.advance('1m')
      await until(() => heartbeats.get('lives')?.getTime() === ctx.clock.now().getTime())
      const run = await lastRun(job)
      expect(run.outcome).to.equal(reason)
      expect((run.summary as { error: string }).error).to.match(new RegExp(message))
    })
  }

  it('takes no thread for hung after this process itself stood still', async () => {
    const { heartbeats } = start(['lives'], { heartbeatMs: 100 })
    await until(() => heartbeats.has('lives'))
    await standStill(1000)
    // The first ones may have waited in the meantime.
    for (let beats = 0; beats < 3; beats += 1) {
      ctx.clock.advance('1m')
      await until(() => heartbeats.get('lives')?.getTime() === ctx.clock.now().getTime())
    }
    expect(failures('lives')).to.deep.equal([])
  })

  it('tries again where the system gives it no thread, at the start as later', async () => {
    const create = sinon.stub(Bree.prototype, 'createWorker')
    create.callThrough()
    for (const call of [0, 1]) create.onCall(call).throws(new Error('the system has no thread left'))
    const sweep = { everyMs: 60_000, hasWork: () => Promise.resolve(true), isHourly: false }
    start(['counts'])
    start(['sweeps'], { sweep })
    await until(() => ctx.counted.filter(({ metric }) => metric === 'reminders_total').length === 2)
    expect([...failures('counts'), ...failures('sweeps')]).to.deep.equal(['failed', 'failed'])
    expect((await lastRun('counts')).summary).to.deep.equal({ error: 'the system has no thread left' })
  })

  it('waits twice as long after each failure in a row', async () => {
    start(['throws'], { restartMs: 20 })
    await until(() => failures('throws').length >= 4)
    const pauses = ctx.logged
      .map((line) => JSON.parse(line) as { pauseMs?: number })
      .flatMap(({ pauseMs }) => pauseMs ?? [])
    expect(pauses.slice(0, 4)).to.deep.equal([20, 40, 80, 160])
  })

  it('keeps the last heartbeat of each job', async () => {
    const { heartbeats } = start(['lives'])
    await until(() => heartbeats.has('lives'))
    expect(heartbeats.get('lives')).to.deep.equal(ctx.clock.now())
  })

  it('forwards the counters of threads', async () => {
    start(['counts'])
    await until(() => ctx.counted.length > 0)
    expect(ctx.counted).to.deep.equal([{ metric: 'reminders_total', labels: { stage: '3', outcome: 'sent' } }])
  })

  describe('of a job that sweeps', () => {
    /** The threads that ran; `hourly`: those that had to do the hourly work. */
    const threads = () => ctx.counted.filter(({ metric }) => metric === 'reminders_total')
    const hourly = () => threads().filter(({ labels }) => labels['hourly'] === 'true')
    const checks = () => ctx.counted.filter(({ metric }) => metric === 'job_runs_total').length

    it('starts a thread only if there is work, and checks again when it has ended', async () => {
      let work = 0
      start(['sweeps'], { sweep: { everyMs: 5, hasWork: () => Promise.resolve(work-- > 0), isHourly: false } })
      await until(() => checks() >= 3)
      expect(threads()).to.have.length(0)
      work = 2
      await until(() => threads().length === 2)
      const before = checks()
      await until(() => checks() >= before + 3)
      expect(threads()).to.have.length(2)
      expect(hourly()).to.have.length(0)
      expect(failures('sweeps')).to.deep.equal([])
    })

    it('records its heartbeat even if no thread was started', async () => {
      const { heartbeats } = start(['sweeps'], {
        sweep: { everyMs: 60_000, hasWork: () => Promise.resolve(false), isHourly: false },
      })
      expect(await lastRun('sweeps')).to.include({ outcome: 'done' })
      await until(() => heartbeats.has('sweeps'))
      expect(heartbeats.get('sweeps')).to.deep.equal(ctx.clock.now())
      expect(threads()).to.have.length(0)
    })

    it('starts a thread once an hour, even without work, and passes that on', async () => {
      const sweep = { everyMs: 5, hasWork: () => Promise.resolve(false), isHourly: true }
      start(['sweeps'], { sweep, firstHourlyMs: 0 })
      await until(() => checks() >= 3)
      expect(threads()).to.have.length(1)
      expect(hourly()).to.have.length(1)
    })

    it('waits a minute after the start with what is done once an hour: a daemon that starts serves first', async () => {
      const clock = sinon.useFakeTimers({ toFake: ['performance'] })
      start(['sweeps'], { sweep: { everyMs: 5, hasWork: () => Promise.resolve(false), isHourly: true } })
      clock.tick(59_999)
      await until(() => checks() >= 3)
      expect(threads()).to.have.length(0)
      clock.tick(1)
      await until(() => hourly().length === 1)
    })

    it('checks again after a failed check', async () => {
      let left = 3
      const hasWork = (): Promise<boolean> => {
        left -= 1
        return left > 0 ? Promise.reject(new Error('the database is unreachable')) : Promise.resolve(left === 0)
      }
      start(['sweeps'], { sweep: { everyMs: 5, hasWork, isHourly: false } })
      await until(() => threads().length === 1)
      expect(failures('sweeps')).to.deep.equal([])
      expect(ctx.logged.join('')).to.include('the database is unreachable')
    })

    it('restarts a failed thread', async () => {
      start(['throws'], { sweep: { everyMs: 60_000, hasWork: () => Promise.resolve(true), isHourly: false } })
      await until(() => failures('throws').length >= 2)
      expect(await lastRun('throws')).to.include({ outcome: 'failed' })
    })

    it('ends a thread whose sweep never ends', async () => {
      const sweep = { everyMs: 60_000, hasWork: () => Promise.resolve(true), isHourly: false }
      start(['never-ends'], { sweep, longestSweepMs: 100 })
      await until(() => failures('never-ends').length >= 1)
      expect(failures('never-ends')[0]).to.equal('overdue')
    })

    it('starts nothing once it is stopped, even if it was just checking', async () => {
      let answer = (): void => undefined
      const looking = new Promise<boolean>((resolve) => (answer = () => resolve(true)))
      let looked = false
      const hasWork = (): Promise<boolean> => {
        looked = true
        return looking
      }
      const scheduler = start(['sweeps'], { sweep: { everyMs: 5, hasWork, isHourly: false } })
      await until(() => looked)
      const stopped = scheduler.stop(2000)
      answer()
      await stopped
      start(['counts'])
      await until(() => threads().some(({ labels }) => labels['stage'] === '3'))
      expect(threads()).to.have.length(1)
    })
  })

  describe('on stop', () => {
    it('lets jobs end that react to the cancellation, and counts no failure', async () => {
      const scheduler = start(['lives', 'counts'])
      await until(() => scheduler.heartbeats.has('lives'))
      const startedMs = performance.now()
      await scheduler.stop(5000)
      expect(performance.now() - startedMs).to.be.lessThan(5000)
      expect(failures('lives')).to.deep.equal([])
    })

    it('ends by the deadline, whatever the jobs do', async () => {
      const scheduler = start(['ignores-cancel', 'loops', 'lives'], { heartbeatMs: 60_000 })
      await until(() => ['ignores-cancel', 'loops', 'lives'].every((job) => scheduler.heartbeats.has(job)))
      const startedMs = performance.now()
      await scheduler.stop(300)
      expect(performance.now() - startedMs).to.be.within(290, 10_000)
    })

    it('also ends before its jobs have started', async () => {
      const scheduler = start(['lives'])
      await scheduler.stop(2000)
      expect(scheduler.heartbeats.size).to.equal(0)
    })

    it('restarts no failed job', async () => {
      const scheduler = start(['throws'], { restartMs: 50 })
      await until(() => failures('throws').length === 1)
      await scheduler.stop(1000)
      // The restarts of another scheduler take longer than the remaining pause of the stopped one.
      start(['ends'], { restartMs: 50 })
      await until(() => failures('ends').length >= 3)
      expect(failures('throws')).to.have.length(1)
    })
  })

  describe('with the real jobs', () => {
    let receiver: Receiver
    beforeEach(async () => {
      receiver = await Receiver.start()
      // Threads use the real clock, so the rows written here must, too.
      Object.assign(ctx, { clock: systemClock })
    })
    afterEach(() => receiver.stop())

    function startJobs(names: readonly string[]): Scheduler {
      const env = testEnvironment({ BILLING_SWEEP_SECONDS: '0.1', BILLING_LOG_LEVEL: 'silent' })
      const jobs = schedule({ sweepSeconds: 0.1 }).filter(({ name }) => names.includes(name))
      const scheduler = new Scheduler(ctx, env, { jobs, heartbeatMs: 200, firstHourlyMs: 0 })
      running.push(scheduler)
      return scheduler
    }

    it('delivers due webhooks at start and when it is woken, and stops without leaving a lease', async () => {
      const app = await anApp(ctx, { webhookUrl: receiver.url })
      receiver.secret = app.webhookSecret
      const emit = (): Promise<void> =>
        inTransaction(ctx, (tx) =>
          emitEvent(tx, { app: app.app, type: 'transaction.completed', data: aCompletion('user-1') }),
        )
      await emit()
      const scheduler = startJobs(['deliver-webhooks'])
      await receiver.waitFor(1)
      const waitsMs: number[] = []
      for (let count = 2; count <= 6; count += 1) {
        await emit()
        const emittedMs = performance.now()
        scheduler.wakeSender()
        await receiver.waitFor(count)
        waitsMs.push(performance.now() - emittedMs)
      }
      // Without a wake-up it checks once a second.
      expect(Math.min(...waitsMs)).to.be.lessThan(500)
      expect(receiver.received.every(({ verified }) => verified)).to.equal(true)
      await scheduler.stop(10_000)
      const statuses = (await listDeliveries(ctx, app.app)).rows.map((event) => event.delivery_status)
      expect(statuses).to.deep.equal(Array(6).fill('delivered'))
      expect(failures('deliver-webhooks')).to.deep.equal([])
      expect(ctx.counted.some(({ metric }) => metric === 'webhook_deliveries_total')).to.equal(true)
    })

    for (const job of ['send-reminders', 'expire', 'reconcile']) {
      it(`sweeps with ${job} and records it`, async () => {
        const scheduler = startJobs([job])
        const run = await lastRun(job)
        expect(run.outcome).to.equal('done')
        if (job !== 'send-reminders')
          expect(run.summary).to.include(job === 'expire' ? { expired: 0 } : { lookedUp: 0 })
        expect(failures(job)).to.deep.equal([])
        await scheduler.stop(5000)
      })
    }
  })
})
