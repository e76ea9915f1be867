import { backupOld } from '#alerts/conditions/machine.ts'
import { apps } from '#apps/store.ts'
import { perform } from '#commands/perform.ts'
import { operator } from '#commands/caller.ts'
import { rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { updateApp } from '#apps/update-app.ts'
import { schedule } from '#daemon/jobs.ts'
import { insertJobRun } from '#upkeep/job-runs/store.ts'
import { inTransaction } from '#commands/transaction.ts'
import { backUp } from '#backups/back-up.ts'
import { listBackups, recordVerified } from '#backups/backup-folder.ts'
import { checkBackups } from '#doctor/check-backups.ts'
import { checkBaseAddress, checkMetrics } from '#doctor/check-addresses.ts'
import { checkDurability, clockSkewSeconds } from '#doctor/check-database.ts'
import { checkDisk, diskResult } from '#doctor/check-disk.ts'
import { checkSettings } from '#doctor/check-settings.ts'
import { JOBS, checkRealtime } from '#doctor/check-work.ts'
import { examine } from '#doctor/doctor.ts'
import type { CheckResult } from '#shared/check-result.ts'
import { queueRealtimeWrite, realtimeWrites, type RealtimeWrite } from '#realtime/store.ts'
import { reminders } from '#mails/reminders/store.ts'
import { UNTRIED } from '#mail/mail-columns.ts'
import { parseKeyring } from '#shared/crypto.ts'
import { MINUTE_MS, SECOND_MS, addMs, asAppTime, formatTimestamp, systemClock } from '#shared/time.ts'
import { subscriptions } from '#subscriptions/store.ts'
import { insertProviderEvent } from '#transactions/store.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import { retryEvent } from '#webhooks/retry-event.ts'
import { events } from '#webhooks/store.ts'
import { whileUnmigrated } from '../support/broken-tables.ts'
import { enableMethod, forgetVersion } from '../support/operators.ts'
import { presentContext, realTimeContext, TEST_KEYS, type TestContext } from '../support/context.ts'
import { copyRow } from '../support/copies.ts'
import { moveToOwnServer } from '../support/database.ts'
import { deliverDue } from '../support/deliver-due.ts'
import { aCompletion, anApp, aPlan, aSubscription, aWrongEnd, partlyPaid, priceId } from '../support/factories.ts'
import { failEvents } from '../support/failed-events.ts'
import { listen, stopServer } from '../support/http-server.ts'
import { Receiver } from '../support/receiver.ts'
import { rowsReadBy } from '../support/rows-read.ts'
import { scratchFolder } from '../support/scratch.ts'

const NEW_KEY = `new:${Buffer.alloc(32, 9).toString('base64')}`

async function result(ctx: TestContext, check: string): Promise<CheckResult> {
  const found = (await examine(ctx)).filter((one) => one.check === check)
  return found.find(({ ok }) => !ok) ?? found.find(({ fix }) => fix !== null) ?? found[0]!
}

describe('doctor', () => {
  it('warns of a variable that is not a setting, without its value', () => {
    const { results } = checkSettings({ BILLING_BACKUP_RECIPIENTS: 'canary' })
    expect(results).to.deep.equal([
      {
        check: 'settings',
        ok: true,
        detail: 'development, base address http://127.0.0.1:8080; not a setting: BILLING_BACKUP_RECIPIENTS',
        fix: 'correct its name, or remove it (README, Configuration)',
      },
    ])
  })

  it('passes every check on a healthy service', async () => {
    // The tests' server writes its log later, which is a failure.
    const moveBack = await moveToOwnServer()
    // A clock that stood still would fall behind the database's on a slow machine.
    const ctx = realTimeContext()
    const app = await anApp(ctx)
    await aSubscription(ctx, app, await aPlan(ctx, app))
    const results = await examine(ctx).finally(moveBack)
    expect(results.filter(({ ok }) => !ok)).to.deep.equal([])
    expect(results.map(({ check }) => check)).to.include.members([
      'database',
      'durability',
      'disk',
      'address',
      'metrics',
      'schema',
      'clock',
      'smtp',
      'keys',
      'relay',
      'providers',
      'jobs',
    ])
    for (const found of results) expect(found).to.have.all.keys('check', 'ok', 'detail', 'fix')
  })

  it('acknowledged payments that are not durable are a failure, on the embedded development server a warning', async () => {
    const ctx = presentContext()
    const durability = async (config: Partial<TestContext['config']> = {}) =>
      (await checkDurability({ ...ctx, config: { ...ctx.config, ...config } }))[0]!
    const found = await durability()
    expect(found).to.include({ check: 'durability', ok: false })
    expect(found.detail).to.include('innodb_flush_log_at_trx_commit is 2')
    expect(found.fix).to.include('innodb_flush_log_at_trx_commit = 1')
    expect(await durability({ databaseUrl: null })).to.deep.include({ ok: true, fix: found.fix })
    expect(await durability({ databaseUrl: null, env: 'production' })).to.include({ ok: false })
  })

  it('a binary log that is written later is a failure, one that is off is none', async () => {
    const facts = { flushesLog: 1, hasBinaryLog: true, syncsBinaryLog: 0 }
    const found = async (changes: Partial<typeof facts>) => {
      const ctx = presentContext()
      const db = { ...ctx.db, single: () => Promise.resolve({ ...facts, ...changes }) as never }
      return (await checkDurability({ ...ctx, db }))[0]!
    }
    expect((await found({})).fix).to.include('sync_binlog = 1')
    expect(await found({ syncsBinaryLog: 1 })).to.include({ ok: true })
    expect(await found({ hasBinaryLog: false })).to.include({ ok: true })
  })

  it('warns where less than a tenth or less than 2 GB are free, and sees the disks of home, logs and database', async () => {
    const result = (free: number, size: number) => diskResult('/var/lib/mysql', { free: free * 1e9, size: size * 1e9 })
    expect(result(50, 100)).to.include({ ok: true, fix: null })
    expect(result(9, 100).fix).to.be.a('string')
    expect(result(1.9, 10)).to.include({ ok: true }).and.have.property('fix').that.is.a('string')
    expect(result(9, 100).detail).to.include('9.0 GB free, 9 %, where /var/lib/mysql lies')
    const found = await checkDisk(presentContext())
    expect(found.length).to.be.greaterThan(0)
    for (const { detail } of found) expect(detail).to.match(/^\d+\.\d GB free, \d+ %, where \/\S+ lies$/)
    expect(await checkDisk(presentContext({ BILLING_HOME: '/no/such/folder' }))).to.have.length.greaterThan(0)
  })

  it('warns where the base address is unreachable or another service, and where watch is refused', async () => {
    let answer = { status: 200, body: '{"status":"up"}' }
    const asked: (string | undefined)[] = []
    const server = createServer((request, response) => {
      asked.push(request.url)
      response.writeHead(answer.status).end(answer.body)
    })
    const port = await listen(server)
    const ctx = presentContext({ BILLING_BASE_URL: `http://127.0.0.1:${port}/pay`, BILLING_PORT: String(port) })
    const both = async () => [(await checkBaseAddress(ctx))[0]!, (await checkMetrics(ctx))[0]!] as const
    try {
      for (const found of await both()) expect(found).to.include({ ok: true, fix: null })
      expect(asked).to.deep.equal(['/pay/healthz', '/metrics'])
      for (const [status, body] of [
        [200, '<h1>It works!</h1>'],
        [200, 'null'],
        [403, '{"status":"up"}'],
      ] as const) {
        answer = { status, body }
        const [address] = await both()
        expect(address.detail).to.include('another service answers')
        expect(address).to.include({ ok: true }).and.have.property('fix').that.includes('BILLING_BASE_URL')
      }
      const [, metrics] = await both()
      expect(metrics.detail).to.include(`http://127.0.0.1:${port}/metrics answered 403`)
      expect(metrics).to.include({ ok: true }).and.have.property('fix').that.includes('BILLING_METRICS_TOKEN')
    } finally {
      await stopServer(server)
    }
    const [address, metrics] = await both()
    expect(address.detail).to.include('cannot be reached from here: ')
    expect(metrics.fix).to.include('BILLING_PORT')
  })

  it('knows the jobs of the schedule', () => {
    expect(schedule({ sweepSeconds: 60 }).map(({ name }) => name)).to.have.members([...JOBS])
  })

  it('a missing migration is a failure, fixed by migrate, and the tables are not checked', async () => {
    const ctx = presentContext()
    await whileUnmigrated(ctx.db, async (name) => {
      const results = await examine(ctx)
      const schema = results.find(({ check }) => check === 'schema')
      expect(schema).to.include({ ok: false, fix: 'run billing-cli migrate' })
      expect(schema?.detail).to.include(name)
      expect(results.map(({ check }) => check)).to.not.include('ledger')
    })
  })

  it('clocks do not differ because the database took seconds to answer, at which time it read its own', async () => {
    const ctx = presentContext()
    const begun = systemClock.now()
    let readings = 0
    const clock = { now: () => addMs(begun, (readings += 1) === 1 ? 0 : 10 * SECOND_MS) }
    expect(await clockSkewSeconds({ ...ctx, clock })).to.equal(0)
  })

  it('clocks that differ by more than two seconds are a failure', async () => {
    const ctx = presentContext()
    ctx.clock.advance('5s')
    const found = await result(ctx, 'clock')
    expect(found.ok).to.equal(false)
    expect(found.detail).to.match(/the database is [456]\.\d s behind this machine/)
  })

  it('a secret whose key is missing is named, as is one that was copied to another app', async () => {
    const ctx = presentContext()
    const { app } = await anApp(ctx, { webhookUrl: 'http://127.0.0.1:9/hooks' })
    const closed = await result({ ...ctx, keyring: parseKeyring(NEW_KEY) }, 'keys')
    expect(closed.ok).to.equal(false)
    expect(closed.detail).to.include(`the webhook_secret of app ${app.id}`).and.include('needs encryption key "test"')
    const other = await anApp(ctx)
    await ctx.db.update(apps, { id: other.app.id }, { apiSecret: app.apiSecret })
    expect((await result(ctx, 'keys')).detail).to.include(`the api_secret of app ${other.app.id}: the secret at`)
  })

  it('a lost key is a failure until its secrets are set anew and the earlier credentials forgotten, which the fix says', async () => {
    const ctx = presentContext()
    const { app } = await anApp(ctx)
    const credentials = { secretKey: 'sk_test_x', webhookSecret: 'whsec_x' }
    await enableMethod(ctx, 'linh', app, 'card', credentials)
    const withoutKey = { ...ctx, keyring: parseKeyring(NEW_KEY) }
    await enableMethod(withoutKey, 'linh', app, 'card', credentials)
    const { detail, fix } = await result(withoutKey, 'keys')
    expect(detail).to.include(`the card credentials of app ${app.id}, version 1`)
    expect(fix).to.include('method forget')
    await forgetVersion(withoutKey, 'linh', app, 'card', 1)
    expect((await result(withoutKey, 'keys')).detail).not.to.include('card credentials')
  })

  it('events held because their secret cannot be decrypted are a failure until they are sent', async () => {
    const ctx = presentContext()
    const receiver = await Receiver.start()
    try {
      const { app } = await anApp(ctx, { webhookUrl: receiver.url, sandbox: false })
      const right = app.webhookSecret
      const setSecret = (secret: string | null) => ctx.db.update(apps, { id: app.id }, { webhookSecret: secret })
      await setSecret('v1.lost.AA.AA.AA')
      const data = aCompletion('u')
      await inTransaction(ctx, (tx) => emitEvent(tx, { app, type: 'transaction.completed', data }))
      await deliverDue(ctx)
      const waiting = await result(ctx, 'webhooks')
      expect(waiting).to.include({ ok: false })
      expect(waiting.detail).to.equal(
        `app ${app.id}: its events are held, because its webhook secret cannot be decrypted`,
      )
      await setSecret(right)
      ctx.clock.advance('1m')
      expect(await deliverDue(ctx)).to.include({ delivered: 1 })
      expect(await result(ctx, 'webhooks')).to.include({ ok: true })
    } finally {
      await receiver.stop()
    }
  })

  it('secrets under an older key are a warning, fixed by key rotate', async () => {
    const ctx = presentContext()
    await anApp(ctx)
    const found = await result({ ...ctx, keyring: parseKeyring(`${NEW_KEY},${TEST_KEYS}`) }, 'keys')
    expect(found.ok).to.equal(true)
    expect(found.fix).to.include('key rotate')
  })

  it('an unreachable mail server is a failure; in development mails are files', async () => {
    expect((await result(presentContext(), 'smtp')).detail).to.include('development: mails are files in')
    const unreachable = await result(
      presentContext({ BILLING_SMTP_URL: 'smtp://127.0.0.1:9', BILLING_MAIL_FROM: 'pay@example.com' }),
      'smtp',
    )
    expect(unreachable.ok).to.equal(false)
    expect(unreachable.fix).to.include('BILLING_SMTP_URL')
  })

  it('incomplete relay settings are a warning, and a failure where an app uses the relay', async () => {
    const alone = presentContext({ BILLING_RELAY_SECRET: 'a-relay-secret-0123' })
    const unfinished = await result(alone, 'relay')
    expect(unfinished, 'no app uses bank transfers').to.include({ ok: true })
    expect(unfinished.fix).to.include('BILLING_RELAY_AUTHSERV_IDS')
    const noSecret = await result(presentContext({ BILLING_RELAY_AUTHSERV_IDS: 'mx.example.com' }), 'relay')
    expect(noSecret.fix).to.include('BILLING_RELAY_SECRET')
    const both = { BILLING_RELAY_SECRET: 'a-relay-secret-0123', BILLING_RELAY_AUTHSERV_IDS: 'mx.example.com' }
    expect(await result(presentContext(both), 'relay')).to.include({ ok: true, fix: null })
    await anApp(alone, { methods: ['bank_transfer'] })
    const failure = (await examine(alone)).find(({ check, ok }) => check === 'relay' && !ok)
    expect(failure?.detail).to.include('every bank mail is untrusted')
    expect(failure?.fix).to.include('BILLING_RELAY_AUTHSERV_IDS')
  })

  it('everything that an app with manual bank transfer lacks is reported at once', async () => {
    const ctx = presentContext()
    const { app } = await anApp(ctx, { methods: ['bank_transfer'] })
    const relay = (await examine(ctx)).filter(({ check }) => check === 'relay')
    const name = `app ${app.id} has bank_transfer enabled and does not offer it:`
    expect(relay.map(({ detail, fix }) => [detail, fix])).to.deep.equal([
      [`${name} no active bank account is assigned`, `run billing-cli bank-account assign ${app.id} <bank_account_id>`],
      [`${name} it needs QR payment (payOS) too`, `run billing-cli method enable ${app.id} payos`],
    ])
  })

  it('credentials that the provider refuses are a failure, an unreachable provider is a warning', async () => {
    const stripe = createServer((_request, response) => {
      response.writeHead(401, { 'Content-Type': 'application/json' })
      response.end(JSON.stringify({ error: { type: 'invalid_request_error', message: 'Invalid API Key provided' } }))
    })
    const ctx = presentContext({ BILLING_STRIPE_API_BASE: `http://127.0.0.1:${await listen(stripe)}` })
    const { app } = await anApp(ctx)
    await enableMethod(ctx, 'mai', app, 'card', { secretKey: 'sk_test_wrong', webhookSecret: 'whsec_x' })
    const refused = await result(ctx, 'providers')
    expect(refused).to.include({ ok: false })
    expect(refused.detail).to.equal(`app ${app.id}, card: Stripe does not know this secret key`)
    expect(refused.fix).to.include(`method enable ${app.id} card`)
    await stopServer(stripe)
    const unreachable = await result(ctx, 'providers')
    expect(unreachable.ok).to.equal(true)
    expect(unreachable.fix).to.not.equal(null)
  })

  it('a daemon that is not running is a warning, a job that failed or stopped running is a failure', async () => {
    const ctx = presentContext()
    expect((await result(ctx, 'jobs')).detail).to.include('the daemon is not running')
    const run = (job: string, minutesAgo: number, outcome: 'done' | 'failed' = 'done') => {
      const at = addMs(ctx.clock.now(), -minutesAgo * MINUTE_MS)
      const summary = outcome === 'failed' ? { error: 'out of paper' } : { done: 1 }
      return insertJobRun(ctx.db, { job, daemon: 'here:1', startedAt: at, finishedAt: at, outcome, summary })
    }
    for (const job of JOBS) await run(job, 60)
    expect(await result(ctx, 'jobs')).to.include({ ok: true })
    expect((await result(ctx, 'jobs')).detail).to.include('the daemon is not running: the last run')
    for (const job of JOBS.slice(1)) await run(job, 0)
    expect((await result(ctx, 'jobs')).detail).to.include(`${JOBS[0]}: unresponsive since`)
    await run(JOBS[0], 0, 'failed')
    expect(await result(ctx, 'jobs')).to.include({ ok: false })
    expect((await result(ctx, 'jobs')).detail).to.include('out of paper')
    await run(JOBS[0], 0)
    expect(await result(ctx, 'jobs')).to.include({ ok: true, fix: null })
  })

  it('overdue events are a failure', async () => {
    const ctx = presentContext()
    const app = await anApp(ctx, { webhookUrl: 'http://127.0.0.1:9/hooks' })
    await aSubscription(ctx, app, await aPlan(ctx, app))
    const since = formatTimestamp(ctx.clock.now())
    expect((await result(ctx, 'outbox')).ok).to.equal(true)
    ctx.clock.advance('10m')
    expect(await result(ctx, 'outbox')).to.include({
      ok: false,
      detail: `1 event pending; the oldest has been due since ${since} UTC`,
    })
    expect((await result(ctx, 'outbox')).fix).to.match(/if jobs \(above\) reports a running daemon.*start the daemon/)
  })

  it('names every app with unwritten realtime nodes, and reads no more of them than it counts', async () => {
    const ctx = presentContext()
    const apps = [await anApp(ctx), await anApp(ctx), await anApp(ctx)]
    const [many, one, none] = apps.map(({ app }) => app.id)
    const at = addMs(ctx.clock.now(), -10 * MINUTE_MS)
    let last = 0
    const insert = async (appId: number, state: RealtimeWrite['state'], count: number): Promise<void> => {
      await ctx.db.insert(realtimeWrites, {
        ...{ subscriptionId: last + 1, appId, state, requestedAt: at, requestedRevision: 1 },
        ...{ leaseToken: null, leaseUntil: null, attempts: 0, lastError: null, writtenAt: null },
      })
      await copyRow(
        ctx.db,
        'realtime_writes',
        count - 1,
        { subscription_id: 'subscription_id + seq' },
        'subscription_id',
      )
      last += count
    }
    await insert(none!, 'done', 50_000)
    const [[healthy], readHealthy] = await rowsReadBy(ctx, checkRealtime)
    expect(healthy).to.include({ ok: true, detail: 'no write has failed or was left unfinished' })
    expect(readHealthy).to.be.lessThan(50)
    await insert(one!, 'pending', 1)
    await insert(many!, 'failed', 100_000)
    const [[exact]] = await rowsReadBy(ctx, checkRealtime)
    expect(exact!.detail).to.equal('100000 writes failed, 1 write left unfinished')
    await insert(many!, 'failed', 1)
    const [[found], read] = await rowsReadBy(ctx, checkRealtime)
    expect(found).to.include({
      ok: false,
      detail: 'more than 100000 writes failed, 1 write left unfinished',
      fix: `run billing-cli realtime resync ${many} --failed, billing-cli realtime resync ${one} --failed; the messages say why`,
    })
    await insert(many!, 'failed', 30_000)
    const [, readMore] = await rowsReadBy(ctx, checkRealtime)
    // A few more of the server's own.
    expect(readMore - read).to.be.lessThan(100)
  })

  it('reports since when an app has refused its webhooks, whatever was redelivered in between', async () => {
    const ctx = presentContext()
    const receiver = await Receiver.start()
    try {
      const app = await anApp(ctx, { webhookUrl: receiver.url })
      const plan = await aPlan(ctx, app)
      const deliver = async (answer: number): Promise<string> => {
        receiver.answer = answer
        ctx.clock.advance('1m')
        // The first subscription of an end user sends one event.
        await aSubscription(ctx, app, plan, { external_ref: `user-${formatTimestamp(ctx.clock.now())}` })
        await deliverDue(ctx)
        return formatTimestamp(ctx.clock.now())
      }
      const detail = async (): Promise<string> => (await result(ctx, 'webhooks')).detail
      await deliver(200)
      const failingSince = await deliver(500)
      await deliver(500)
      const name = `app ${app.app.id}`
      expect(await detail()).to.match(
        new RegExp(`^${name}: failing since ${failingSince} UTC: 0 events failed, 2 waiting`),
      )

      expect((await result(ctx, 'webhooks')).fix, 'nothing has failed for good').to.equal(
        `contact the app's owner; run billing-cli webhook test ${app.app.id}`,
      )

      receiver.answer = 200
      const first = await ctx.db.one(events, 'ORDER BY id LIMIT 1')
      ctx.clock.advance('1s')
      await perform(ctx, operator('linh'), retryEvent, { event_id: `evt_${first!.id}` }, {})
      expect(await detail(), 'waits to be delivered again').to.include(`failing since ${failingSince} UTC`)
      await deliverDue(ctx)
      expect(await result(ctx, 'webhooks'), 'it recovers by itself').to.deep.include({
        ok: true,
        detail: `${name}: accepts events now; earlier 0 events failed, 2 waiting for a retry`,
        fix: null,
      })
      await failEvents(ctx.db, 'WHERE last_error IS NOT NULL')
      expect(await result(ctx, 'webhooks')).to.deep.include({
        ok: true,
        detail: `${name}: accepts events now; earlier 2 events failed, 0 waiting for a retry`,
        fix: `run billing-cli webhook retry --failed ${app.app.id}`,
      })

      const failingAgain = await deliver(503)
      expect(await detail()).to.include(`failing since ${failingAgain} UTC: 2 events failed, 1 waiting for a retry`)
      expect(await result(ctx, 'webhooks'), 'a sandbox app').to.include({ ok: true })
      await ctx.db.update(apps, { isSandbox: true }, { isSandbox: false })
      expect(await result(ctx, 'webhooks'), 'a live app').to.include({ ok: false })
      await ctx.db.update(apps, { disabledAt: null }, { disabledAt: ctx.clock.now() })
      expect(await result(ctx, 'webhooks'), 'a disabled app').to.include({ ok: true })
    } finally {
      await receiver.stop()
    }
  })

  it('an app without a webhook address is counted, and one with an address but no secret is a warning', async () => {
    const ctx = presentContext()
    const app = await anApp(ctx)
    await aSubscription(ctx, app, await aPlan(ctx, app))
    expect(await result(ctx, 'webhooks')).to.deep.include({
      ok: true,
      detail: 'no event has failed; 1 app without a webhook address',
      fix: null,
    })
    await perform(ctx, operator('linh'), updateApp, { webhook_url: 'http://127.0.0.1:9/hooks' }, { app: app.app })
    const { ok, detail, fix } = await result(ctx, 'webhooks')
    expect([ok, detail]).to.deep.equal([
      true,
      `app ${app.app.id}: has a webhook address but no webhook secret, so no events are sent`,
    ])
    expect(fix).to.include(`app rotate-webhook-secret ${app.app.id}`)
  })

  it('credentials under a missing key are not reported as refused by the provider', async () => {
    const ctx = presentContext()
    const { app } = await anApp(ctx)
    await enableMethod(ctx, 'linh', app, 'card', { secretKey: 'sk_test_x', webhookSecret: 'whsec_x' })
    const found = await result({ ...ctx, keyring: parseKeyring(NEW_KEY) }, 'providers')
    expect(found).to.include({ ok: false })
    expect(found.detail).to.include('credentials cannot be decrypted')
    expect(found.fix).to.include('follow the fix of keys, above')
  })

  it('each unreachable host of the database is a failure', async () => {
    const databaseUrl = 'mysql://root@127.0.0.1:1,127.0.0.1:2/paygate'
    const ctx = presentContext()
    const results = await examine({ ...ctx, config: { ...ctx.config, databaseUrl } })
    const hosts = results.filter(({ check }) => check === 'cluster')
    expect(hosts.map(({ ok, detail }) => [ok, detail])).to.deep.equal([
      [false, '127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1'],
      [false, '127.0.0.1:2: connect ECONNREFUSED 127.0.0.1:2'],
    ])
  })

  it('a check that throws is a failure, with the explanation of the error', async () => {
    const ctx = presentContext()
    const explain = (error: unknown) => `explained: ${(error as Error).message}`
    const clock = {
      now: () => {
        throw new Error('no time')
      },
    }
    const results = await examine({ ...ctx, clock }, { explain })
    expect(results.find(({ check }) => check === 'database')?.detail).to.equal(
      'could not be checked: explained: no time',
    )
  })

  it('money that waits for an operator is a failure with its sum on a live app, and a warning on a sandbox app', async () => {
    const ctx = presentContext()
    const app = await anApp(ctx)
    const plan = await aPlan(ctx, app)
    await partlyPaid(ctx, app, { price_id: priceId(plan) })
    const words = '1 underpaid with ₫90,000 received and not applied'
    expect(await result(ctx, 'flagged')).to.include({ ok: true, detail: `on sandbox apps: ${words}` })
    await ctx.db.update(apps, { isSandbox: true }, { isSandbox: false })
    expect(await result(ctx, 'flagged')).to.include({ ok: false, detail: words })
  })

  it('refused notifications and unconfirmed mails are reported, unwritten nodes and a wrong ledger are failures', async () => {
    const ctx = presentContext()
    const app = await anApp(ctx)
    await aSubscription(ctx, app, await aPlan(ctx, app))
    const { id: subscriptionId } = (await ctx.db.one(subscriptions, ''))!
    const at = addMs(ctx.clock.now(), -10 * MINUTE_MS)
    await inTransaction(ctx, async (tx) => {
      const event = { provider: 'stripe', eventId: 'evt_odd', eventType: 'checkout.session.completed' }
      const more = {
        appId: app.app.id,
        transactionId: null,
        outcome: 'refused',
        note: 'another amount',
        receivedAt: at,
      } as const
      await insertProviderEvent(tx, { ...event, ...more })
      await tx.insert(reminders, {
        appId: app.app.id,
        subscriptionId,
        periodEnd: asAppTime(at),
        stage: 1,
        ...{ ...UNTRIED, status: 'claimed', claimedAt: at, handedOverAt: at },
      })
      await queueRealtimeWrite(tx, { appId: app.app.id, subscriptionId, revision: 1 })
    })
    await ctx.db.update(realtimeWrites, { subscriptionId }, { requestedAt: at })
    await aWrongEnd(ctx, app)
    expect((await result(ctx, 'notifications')).detail).to.include('stripe evt_odd: another amount')
    expect((await result(ctx, 'reminders')).fix).to.include('reminders settle')
    expect(await result(ctx, 'realtime')).to.include({
      ok: false,
      detail: '0 writes failed, 1 write left unfinished',
      fix: `run billing-cli realtime resync ${app.app.id} --failed; the messages say why`,
    })
    expect(await result(ctx, 'ledger')).to.include({ ok: false })
    expect((await result(ctx, 'ledger')).detail).to.include(`subscription ${subscriptionId} ends`)
  })

  it('in production warns where no backup of the last 26 hours was verified, and where none can be made', async () => {
    const recipient = { BILLING_BACKUP_RECIPIENT: await identityToRecipient(await generateX25519Identity()) }
    const ctx = presentContext({ ...recipient, BILLING_BACKUP_DIR: scratchFolder('backups') })
    const check = (env: 'development' | 'production', own: TestContext = ctx) =>
      checkBackups({ ...own, config: { ...own.config, env } })
    expect(await check('development')).to.deep.equal([])
    expect((await check('production', presentContext()))[0]!.detail).to.include('BILLING_BACKUP_RECIPIENT')
    const [last] = recipient.BILLING_BACKUP_RECIPIENT.slice(-1)
    const mistyped = `${recipient.BILLING_BACKUP_RECIPIENT.slice(0, -1)}${last === 'q' ? 'p' : 'q'}`
    const unusable = presentContext({ BILLING_BACKUP_RECIPIENT: mistyped })
    expect((await check('production', unusable))[0]!.detail).to.include('the recipient must be a public key of age')
    expect((await check('production'))[0]!.detail).to.include('was verified')

    await backUp(ctx, { onProgress: () => undefined })
    const [backup] = await listBackups(ctx.config.backup.folder)
    expect((await check('production'))[0]!.fix).to.include('backup verify')
    await recordVerified(backup!, ctx.clock.now())
    expect((await check('production'))[0]!.fix).to.equal(null)
    // As the daemon's user sees it: only root may read a backup.
    writeFileSync(backup!.file, Buffer.alloc(backup!.bytes))
    ctx.clock.advance('25h')
    expect((await check('production'))[0]!.fix).to.equal(null)
    const production = { ...ctx, config: { ...ctx.config, env: 'production' } } as const
    expect(await backupOld(production, { now: ctx.clock.now() }), 'the alert').to.deep.equal([])
    ctx.clock.advance('2h')
    expect((await check('production'))[0])
      .to.include({ ok: true })
      .and.have.property('fix')
      .that.is.a('string')
    rmSync(backup!.file)
    expect((await check('production'))[0]!.detail, 'what was verified is gone').to.include('was verified')
  })
})
