import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { bankSilent } from '#alerts/conditions/bank-silence.ts'
import { isFarBelow } from '#alerts/conditions/decide-failing.ts'
import { isSilent } from '#alerts/conditions/decide-silence.ts'
import { nearlyFull, oldBackup, skewed } from '#alerts/conditions/machine.ts'
import { ALERT_KINDS, type AlertKind } from '#alerts/kinds.ts'
import { listAlerts } from '#alerts/list-alerts.ts'
import { evaluateAlerts, newMemory, READERS, type Readers } from '#alerts/evaluate-alerts.ts'
import { muteAlert } from '#alerts/mute-alert.ts'
import { alertOnce, deleteOld } from '#alerts/run-alerts.ts'
import { sendDigest } from '#alerts/send-digest.ts'
import { sendMessages } from '#alerts/send-messages.ts'
import { alertMessages, alerts, finishChore } from '#alerts/store.ts'
import { LEDGER_CHORE, verifyNightly } from '#alerts/verify-nightly.ts'
import { apps } from '#apps/store.ts'
import { bankMails } from '#bank-mail/store.ts'
import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { insertJobRun } from '#upkeep/job-runs/store.ts'
import { JOBS } from '#doctor/check-work.ts'
import { payments } from '#payments/store.ts'
import { providerPauses } from '#providers/pauses/store.ts'
import { providerSessions } from '#providers/store.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, addMs, formatTimestamp, type RealTime } from '#shared/time.ts'
import { transactions } from '#transactions/store.ts'
import { events } from '#webhooks/store.ts'
import { aBankMail } from '../cli/states.ts'
import { SmtpInbox } from '../mail/smtp-inbox.ts'
import { whileLacking } from '../support/broken-tables.ts'
import { TestClock, testContext, type TestContext } from '../support/context.ts'
import { aCheckout, anApp, aPlan, aSubscription, partlyPaid, priceId, type TestApp } from '../support/factories.ts'
import { failEvents } from '../support/failed-events.ts'
import { addBankAccount, assignBankAccount } from '../support/operators.ts'
import { Receiver, type AlertBody } from '../support/receiver.ts'
import { insertMany, rowsLike } from '../support/many-rows.ts'
import { aPausedAccount, endPauses, unallocatedMoney } from '../support/review.ts'
import { seededRandom } from '../support/seeded-random.ts'

const SECRET = `whsec_${Buffer.alloc(24, 5).toString('base64')}`
const START = '2026-03-01 10:00:00'
const SPACE = { free: 500e9, size: 1000e9 }

/** A row as it is inserted. */
function withoutId<T extends { readonly id: number }>(row: T): Omit<T, 'id'> {
  return Object.fromEntries(Object.entries(row).filter(([name]) => name !== 'id')) as Omit<T, 'id'>
}

/** What the machine reports, which a test sets. */
interface Machine {
  space: { readonly free: number; readonly size: number }
  skewSeconds: number
  backupAt: RealTime | null
}

describe('alerts', () => {
  let ctx: TestContext
  let receiver: Receiver<AlertBody>
  let machine: Machine
  let readers: Readers
  const stops: (() => Promise<unknown>)[] = []

  beforeEach(async () => {
    receiver = await Receiver.start()
    stops.push(() => receiver.stop())
    open({})
  })

  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop()
  })

  function open(settings: Readonly<Record<string, string>>): void {
    const webhook = { BILLING_ALERT_WEBHOOK_URL: receiver.url, BILLING_ALERT_WEBHOOK_SECRET: SECRET }
    ctx = testContext({ ...webhook, ...settings }, {}, new TestClock(START))
    machine = { space: SPACE, skewSeconds: 0, backupAt: ctx.clock.now() }
    readers = {
      ...READERS,
      disk_low: (_ctx, look) => Promise.resolve(nearlyFull([{ folder: '/data', space: machine.space }], look)),
      clock_skew: (_ctx, look) => Promise.resolve(skewed(machine.skewSeconds, look)),
      backup_old: (_ctx, look) => Promise.resolve(oldBackup(machine.backupAt, look.now)),
    }
  }

  /** Each job notes a run, but for `silent`; a backup is verified each day. */
  async function live(silent: string | null = null): Promise<void> {
    const at = ctx.clock.now()
    for (const job of JOBS)
      if (job !== silent)
        await insertJobRun(ctx.db, { job, daemon: 'd', startedAt: at, finishedAt: at, outcome: 'done', summary: {} })
  }

  const told = (): string[] => receiver.received.map(({ body }) => `${body.type} ${body.kind} ${body.subject}`)

  /** A mail about our account each day of the last four weeks, at noon, the last one a day ago. */
  async function mailsEachDay(accountId: number): Promise<void> {
    for (let day = 1; day <= 28; day += 1)
      await ctx.db.insert(bankMails, {
        ...mailRow(accountId),
        receivedAt: addMs(ctx.clock.now(), -day * DAY_MS + HOUR_MS),
      })
  }

  function mailRow(bankAccountId: number) {
    return {
      ...{ messageId: null, messageIdHash: null, contentHash: '0'.repeat(64), bank: 'ACB', bankReference: null },
      ...{
        amount: null,
        transferCode: null,
        status: 'ignored',
        reason: 'no_transfer_code',
        appId: null,
        bookedAt: null,
      },
      ...{ transactionId: null, review: null, matchedAt: null, closedAt: null, paymentId: null, forwarding: null },
      bankAccountId,
    }
  }

  async function aLiveAppWithBank(): Promise<{ app: TestApp; accountId: number }> {
    const app = await anApp(ctx, { name: 'Live', sandbox: false, webhookUrl: 'http://127.0.0.1:9/hooks' })
    const account = await addBankAccount(ctx, 'linh', { bank: 'ACB', number: '123456789', holder: 'AN' })
    await assignBankAccount(ctx, 'linh', app.app, account.id)
    return { app, accountId: account.id }
  }

  /** `count` payments by PayOS, begun one after the other up to `until`; every `paidOf`th is not completed, 1 completes none. */
  async function attempts(
    { app }: TestApp,
    count: number,
    until: RealTime,
    gapMs: number,
    isPaid: (n: number) => boolean,
  ) {
    const [model] = await ctx.db.all(transactions, 'WHERE app_id = ? LIMIT 1', [app.id])
    for (let n = 0; n < count; n += 1) {
      const at = addMs(until, -n * gapMs)
      const row = withoutId(model!)
      const paid = isPaid(n)
      const times = { createdAt: at, completedAt: paid ? addMs(at, MINUTE_MS) : null } as never
      const id = await ctx.db.insert(transactions, {
        ...row,
        ...(times as object),
        ...{ providerCode: 'payos', transferCode: null, flagReason: null, flaggedAt: null },
        ...{ status: paid ? ('completed' as const) : ('void' as const) },
      })
      await ctx.db.insert(providerSessions, {
        ...{ appId: app.id, transactionId: id, provider: 'payos', providerAccountId: 1, reference: `s-${id}` },
        ...{ url: null, amount: 1, currency: 'VND', status: 'closed' as const, expiresAt: at, lookups: 0, failures: 0 },
        ...{ nextLookupAt: null, createdAt: at, updatedAt: at },
      })
    }
  }

  it('each of twelve faults is reported once within five minutes, and its end once', async () => {
    const { app, accountId } = await aLiveAppWithBank()
    const plan = await aPlan(ctx, app)
    await aCheckout(ctx, app, { external_ref: 'user-0', price_id: priceId(plan) })
    await attempts(app, 60, addMs(ctx.clock.now(), -DAY_MS), HOUR_MS, (n) => n % 4 !== 0)
    await mailsEachDay(accountId)
    const shop = await anApp(ctx, { name: 'Shop', webhookUrl: 'http://127.0.0.1:9/hooks' })
    await aSubscription(ctx, shop, await aPlan(ctx, shop))
    await partlyPaid(ctx, app, { external_ref: 'user-1', price_id: priceId(plan) })
    const payment = await unallocatedMoney(ctx, app, 70_000)
    const memory = newMemory(ctx.clock.now())
    await verifyNightly(ctx, () => Promise.resolve())
    await finishChore(ctx.db, LEDGER_CHORE, { checked: 1, faults: [] })
    let silent: string | null = null
    /** Minutes of a daemon, which looks around in each. */
    async function pass(minutes: number): Promise<void> {
      for (let minute = 0; minute < minutes; minute += 1) {
        ctx.clock.advance('1m')
        await live(silent)
        await alertOnce(ctx, memory, readers)
      }
    }
    await pass(5)
    expect(told()).to.deep.equal([])

    // A day later: the money of both kinds has waited too long, and the bank was silent.
    ctx.clock.advance('1d')
    machine.backupAt = addMs(ctx.clock.now(), -HOUR_MS)
    await pass(5)
    expect(told().sort()).to.deep.equal([
      `alert.opened bank_silent bank account ${accountId}`,
      `alert.opened money_waiting payment ${payment}`,
      ...told().filter((line) => line.includes('money_waiting transaction')),
    ])
    expect(told()).to.have.length(3)

    // Nine more, all at once; the job dies a little earlier, because a job may take its time.
    silent = 'reconcile'
    await pass(3)
    const before = new Set(told())
    await failEvents(ctx.db, 'WHERE app_id = ? LIMIT 1', [shop.app.id])
    await aBankMail(ctx, { bank: 'VCB', bankReference: 'u-1', review: 'not_understood' })
    await aPausedAccount(ctx, app)
    const faults = [{ subject: 'subscription 7', fault: 'ends early' }]
    await finishChore(ctx.db, LEDGER_CHORE, { checked: 1, faults })
    machine = { space: { free: 1e9, size: 1000e9 }, skewSeconds: 9, backupAt: addMs(ctx.clock.now(), -2 * DAY_MS) }
    await attempts(app, 20, addMs(ctx.clock.now(), -31 * MINUTE_MS), 2 * MINUTE_MS, () => false)
    await pass(5)
    const now = told().filter((line) => !before.has(line))
    expect(now.sort()).to.deep.equal([
      `alert.opened account_paused app ${app.app.id} payos`,
      'alert.opened backup_old backup',
      'alert.opened clock_skew database',
      'alert.opened disk_low /data',
      'alert.opened job_silent reconcile',
      'alert.opened ledger_fault subscription 7',
      'alert.opened mail_unreadable VCB',
      `alert.opened method_failing app ${app.app.id} payos`,
      `alert.opened webhooks_failed [TEST] app ${shop.app.id}`,
    ])
    expect(new Set(told().map((line) => line.split(' ')[1]))).to.deep.equal(new Set(ALERT_KINDS))
    expect(new Set(told()).size, 'each once').to.equal(told().length)
    expect(told()).to.have.length(12)

    // All is well again: each end is reported once.
    receiver.received.length = 0
    silent = null
    machine = { space: SPACE, skewSeconds: 0, backupAt: ctx.clock.now() }
    await finishChore(ctx.db, LEDGER_CHORE, { checked: 1, faults: [] })
    await ctx.db.update(events, { deliveryStatus: 'failed' }, { deliveryStatus: 'delivered' })
    await ctx.db.update(transactions, { flagReason: 'underpaid' }, { flagReason: null, flaggedAt: null })
    await ctx.db.update(payments, { closedAt: null }, { closedAt: ctx.clock.now() })
    await ctx.db.update(bankMails, { review: 'not_understood' }, { review: null })
    await endPauses(ctx)
    await ctx.db.insert(bankMails, { ...mailRow(accountId), receivedAt: ctx.clock.now() })
    await attempts(app, 60, addMs(ctx.clock.now(), -30 * MINUTE_MS), MINUTE_MS, () => true)
    await pass(5)
    expect(told().every((line) => line.startsWith('alert.closed'))).to.equal(true)
    expect(told()).to.have.length(12)
    expect(new Set(told()).size).to.equal(12)
    expect(await ctx.db.count(alerts, 'WHERE closed_at IS NULL')).to.equal(0)
  })

  it('of sandbox apps are about webhooks and accounts alone, and say [TEST]; bank mails raise none where sandboxes alone use the account', async () => {
    const shop = await anApp(ctx, { name: 'Shop', webhookUrl: 'http://127.0.0.1:9/hooks' })
    await aSubscription(ctx, shop, await aPlan(ctx, shop))
    await failEvents(ctx.db, 'LIMIT 1')
    await aPausedAccount(ctx, shop)
    const { account_paused, webhooks_failed, money_waiting, mail_unreadable } = READERS
    const ofReview = { account_paused, webhooks_failed, money_waiting, mail_unreadable }
    const { id: bankAccountId } = await addBankAccount(ctx, 'linh', { bank: 'ACB', number: '987654321', holder: 'AN' })
    await assignBankAccount(ctx, 'linh', shop.app, bankAccountId)
    await aBankMail(ctx, { bank: 'ACB', bankReference: 's-1', bankAccountId, review: 'not_understood' })
    await aBankMail(ctx, { bank: 'ACB', bankReference: 's-2', bankAccountId, amount: 50_000, review: 'credit' })
    await ctx.db.update(bankMails, { bankAccountId }, { receivedAt: addMs(ctx.clock.now(), -2 * DAY_MS) })
    await evaluateAlerts(ctx, newMemory(ctx.clock.now()), { ...quiet(), ...ofReview })
    expect((await listAlerts(ctx)).map(({ subject }) => subject)).to.deep.equal([
      `[TEST] app ${shop.app.id} payos`,
      `[TEST] app ${shop.app.id}`,
    ])
    // A live app begins to use the account.
    const live = await anApp(ctx, { name: 'Live', sandbox: false })
    await assignBankAccount(ctx, 'linh', live.app, bankAccountId)
    await evaluateAlerts(ctx, newMemory(ctx.clock.now()), { ...quiet(), ...ofReview })
    expect((await listAlerts(ctx)).map(({ kind }) => kind)).to.include.members(['money_waiting', 'mail_unreadable'])
  })

  it('of live money are raised however much older money of a sandbox app waits', async () => {
    const sandbox = await anApp(ctx, { name: 'Test' })
    const { app: live } = await aLiveAppWithBank()
    const paymentId = await unallocatedMoney(ctx, sandbox, 50_000)
    const row = (await ctx.db.one(payments, 'WHERE id = ?', [paymentId]))!
    await insertMany(
      ctx.db,
      payments,
      rowsLike(row, 5000, (n) => ({ reference: `load-test-${n}` })),
    )
    ctx.clock.advance('1m')
    const waiting = await unallocatedMoney(ctx, live, 99_000)
    ctx.clock.advance('25h')
    await evaluateAlerts(ctx, newMemory(ctx.clock.now()), { ...quiet(), money_waiting: READERS.money_waiting })
    expect((await listAlerts(ctx)).map(({ subject }) => subject)).to.deep.equal([`payment ${waiting}`])
  })

  it('fourteen quiet days report none, though a sandbox app has money that waits and a bank that is silent', async () => {
    const { app, accountId } = await aLiveAppWithBank()
    await aPlan(ctx, app)
    const sandbox = await anApp(ctx, { name: 'Test' })
    await unallocatedMoney(ctx, sandbox, 50_000)
    await mailsEachDay(accountId)
    const random = seededRandom(28)
    const memory = newMemory(ctx.clock.now())
    const until = addMs(ctx.clock.now(), 14 * DAY_MS)
    while (ctx.clock.now() < until) {
      ctx.clock.advance('3h')
      memory.lastEvaluatedAt = addMs(ctx.clock.now(), -MINUTE_MS)
      if (random() < 0.6) await ctx.db.insert(bankMails, { ...mailRow(accountId), receivedAt: ctx.clock.now() })
      machine.backupAt = addMs(ctx.clock.now(), -Math.floor(random() * 25) * HOUR_MS)
      machine.skewSeconds = random() * 1.5
      await live()
      await verifyNightly(ctx, () => Promise.resolve())
      await alertOnce(ctx, memory, readers)
    }
    expect(told()).to.deep.equal([])
    expect(await ctx.db.count(alerts, '')).to.equal(0)
  })

  it('are Standard Webhooks, and are tried again until the receiver takes them, in their order', async () => {
    receiver.answer = 500
    machine.space = { free: 0, size: 1 }
    const memory = newMemory(ctx.clock.now())
    await alertOnce(ctx, memory, { ...quiet(), disk_low: readers.disk_low })
    machine.space = SPACE
    ctx.clock.advance('1m')
    await alertOnce(ctx, memory, { ...quiet(), disk_low: readers.disk_low })
    receiver.received.length = 0
    receiver.answer = (response) => {
      receiver.answer = 200
      response.writeHead(500).end()
    }
    ctx.clock.advance('10m')
    await alertOnce(ctx, memory, quiet())
    expect(told(), 'after one that failed').to.deep.equal(['alert.opened disk_low /data'])
    receiver.received.length = 0
    ctx.clock.advance('10m')
    await alertOnce(ctx, memory, quiet())
    expect(told()).to.deep.equal(['alert.opened disk_low /data', 'alert.closed disk_low /data'])
    const [{ headers, raw, body }] = receiver.received as [(typeof receiver.received)[0]]
    expect(Object.keys(body)).to.deep.equal(['id', 'type', 'kind', 'subject', 'text', 'since'])
    expect(body.since).to.equal(START)
    expect(headers['webhook-id']).to.equal(body.id)
    const { createHmac } = await import('node:crypto')
    const signed = `${body.id}.${String(headers['webhook-timestamp'])}.${raw.toString()}`
    const key = Buffer.from(SECRET.slice(6), 'base64')
    expect(headers['webhook-signature']).to.equal(`v1,${createHmac('sha256', key).update(signed).digest('base64')}`)
  })

  it('are sent once and in their order by several daemons, however slow the receiver is', async () => {
    const memory = newMemory(ctx.clock.now())
    const folders = (space: typeof SPACE): Readers => ({
      ...quiet(),
      disk_low: (_ctx, look) =>
        Promise.resolve(
          nearlyFull(
            ['/a', '/b', '/c', '/d'].map((folder) => ({ folder, space })),
            look,
          ),
        ),
    })
    await evaluateAlerts(ctx, memory, folders({ free: 0, size: 1 }))
    await evaluateAlerts(ctx, memory, folders(SPACE))
    // While the receiver takes its time with a message, another daemon looks for messages.
    let isLooking = false
    receiver.answer = (response) => {
      ctx.clock.advance('25s')
      const look = isLooking ? Promise.resolve(0) : sendMessages(ctx)
      isLooking = true
      void look.then(() => response.writeHead(200).end()).then(() => (isLooking = false))
    }
    for (let look = 0; look < 4; look += 1) await Promise.all([sendMessages(ctx), sendMessages(ctx)])
    for (const folder of ['/a', '/b', '/c', '/d'])
      expect(told().filter((each) => each.endsWith(folder))).to.deep.equal([
        `alert.opened disk_low ${folder}`,
        `alert.closed disk_low ${folder}`,
      ])
  })

  it('reach the webhook although the mail server is dead, and by mail once it lives, many as one mail', async () => {
    const inbox = await SmtpInbox.open()
    stops.push(() => inbox.stop())
    open({
      BILLING_ALERT_MAIL: 'ops@example.com,linh@example.com',
      BILLING_SMTP_URL: inbox.url,
      BILLING_MAIL_FROM: 'billing@pay.example.com',
    })
    inbox.behaviour = 'drop-early'
    machine.space = { free: 0, size: 1 }
    machine.skewSeconds = -9
    const memory = newMemory(ctx.clock.now())
    const both = { ...quiet(), disk_low: readers.disk_low, clock_skew: readers.clock_skew }
    await alertOnce(ctx, memory, both)
    expect(told().sort()).to.deep.equal(['alert.opened clock_skew database', 'alert.opened disk_low /data'])
    expect(inbox.mails).to.deep.equal([])
    inbox.behaviour = 'accept'
    ctx.clock.advance('5m')
    await alertOnce(ctx, memory, both)
    const [mail, ...others] = inbox.mails
    expect(others).to.deep.equal([])
    expect(mail!.recipients).to.have.members(['ops@example.com', 'linh@example.com'])
    expect(mail!.parsed.subject).to.equal('[Paygate] 2 alerts: disk_low, clock_skew')
    expect(mail!.parsed.text).to.include('/data').and.include('the clocks of this machine and the database differ')
    expect(told(), 'the webhook is not repeated').to.have.length(2)
  })

  it('of a muted kind are sent when the time is over and it still lasts, and never where it is over', async () => {
    const memory = newMemory(ctx.clock.now())
    await perform(ctx, operator('linh'), muteAlert, { kind: 'disk_low', for_ms: HOUR_MS }, {})
    await perform(ctx, operator('linh'), muteAlert, { kind: 'clock_skew', for_ms: HOUR_MS }, {})
    const both = { ...quiet(), disk_low: readers.disk_low, clock_skew: readers.clock_skew }
    machine.space = { free: 0, size: 1 }
    machine.skewSeconds = 9
    await alertOnce(ctx, memory, both)
    machine.skewSeconds = 0
    ctx.clock.advance('30m')
    await alertOnce(ctx, memory, both)
    expect(told()).to.deep.equal([])
    const [open] = await listAlerts(ctx)
    expect(open).to.deep.include({ kind: 'disk_low', muted_until: '2026-03-01 11:00:00', notified_at: null })
    ctx.clock.advance('31m')
    await alertOnce(ctx, memory, both)
    expect(told()).to.deep.equal(['alert.opened disk_low /data'])
  })

  it('of a muted kind wait for its end, that something is over too, and what is over is never said before it began', async () => {
    const memory = newMemory(ctx.clock.now())
    const only = { ...quiet(), disk_low: readers.disk_low }
    const mute = (for_ms: number) => perform(ctx, operator('linh'), muteAlert, { kind: 'disk_low', for_ms }, {})
    machine.space = { free: 0, size: 1 }
    await alertOnce(ctx, memory, only)
    await mute(HOUR_MS)
    machine.space = SPACE
    ctx.clock.advance('1m')
    await alertOnce(ctx, memory, only)
    expect(told()).to.deep.equal(['alert.opened disk_low /data'])
    await mute(0)
    await alertOnce(ctx, memory, only)
    expect(told()).to.deep.equal(['alert.opened disk_low /data', 'alert.closed disk_low /data'])
    // The receiver comes back before the first message is tried again.
    receiver.received.length = 0
    receiver.answer = 500
    machine.space = { free: 0, size: 1 }
    await alertOnce(ctx, memory, only)
    receiver.received.length = 0
    receiver.answer = 200
    machine.space = SPACE
    ctx.clock.advance('10s')
    await alertOnce(ctx, memory, only)
    expect(told()).to.deep.equal([])
    ctx.clock.advance('1m')
    await alertOnce(ctx, memory, only)
    expect(told()).to.deep.equal(['alert.opened disk_low /data', 'alert.closed disk_low /data'])
  })

  it('open once however many daemons look, and a kind that cannot be read changes nothing', async () => {
    machine.space = { free: 0, size: 1 }
    const only = { ...quiet(), disk_low: readers.disk_low }
    const looks = await Promise.all([1, 2, 3].map(() => evaluateAlerts(ctx, newMemory(ctx.clock.now()), only)))
    expect(looks.reduce((sum, { opened }) => sum + opened, 0)).to.equal(1)
    const broken = () => Promise.reject(new Error('no disk'))
    await evaluateAlerts(ctx, newMemory(ctx.clock.now()), { ...quiet(), disk_low: broken })
    expect(await ctx.db.count(alerts, 'WHERE closed_at IS NULL')).to.equal(1)
    expect(await ctx.db.count(alertMessages, '')).to.equal(1)
  })

  it('nothing is silent until the daemon has listened for a while', async () => {
    const memory = newMemory(ctx.clock.now())
    const only = { ...quiet(), job_silent: READERS.job_silent }
    await live()
    // The daemon was off for a day.
    ctx.clock.advance('1d')
    expect(await evaluateAlerts(ctx, memory, only)).to.deep.equal({ opened: 0, closed: 0 })
    for (let minute = 0; minute < 8; minute += 1) {
      ctx.clock.advance('1m')
      await live('expire')
      await evaluateAlerts(ctx, memory, only)
    }
    expect((await listAlerts(ctx)).map(({ subject }) => subject)).to.deep.equal(['expire'])
  })

  it('a digest goes out once a day at its time, with what is open and what waits', async () => {
    open({ BILLING_ALERT_DIGEST: '08:00 Asia/Ho_Chi_Minh' })
    const memory = newMemory(ctx.clock.now())
    machine.space = { free: 0, size: 1 }
    const only = { ...quiet(), disk_low: readers.disk_low }
    await alertOnce(ctx, memory, only)
    ctx.clock.set('2026-03-02 00:59:00')
    await alertOnce(ctx, memory, only)
    expect(told()).to.deep.equal(['alert.opened disk_low /data'])
    ctx.clock.set('2026-03-02 01:00:30')
    await alertOnce(ctx, memory, only)
    ctx.clock.advance('1h')
    await alertOnce(ctx, memory, only)
    expect(told().slice(1)).to.deep.equal(['alert.digest digest 1 open alert, 0 alerts resolved since the last digest'])
    expect(receiver.received[1]!.body.text).to.include('- disk_low: /data').and.include('Waiting for review')

    machine.space = SPACE
    await alertOnce(ctx, memory, only)
    expect(told().at(-1)).to.equal('alert.closed disk_low /data')
    // No daemon runs for two days.
    ctx.clock.advance('2d')
    await alertOnce(ctx, memory, only)
    expect(told().at(-1)).to.equal('alert.digest digest 0 open alerts, 1 alert resolved since the last digest')
  })

  it('a digest goes out once a day where clocks are set back and forward, too', async () => {
    open({ BILLING_ALERT_DIGEST: '02:30 Europe/Berlin' })
    const days: string[] = []
    for (const night of ['2026-10-24 22:00:00', '2027-03-27 22:00:00']) {
      ctx.clock.set(night)
      for (let quarter = 0; quarter < 3 * 24 * 4; quarter += 1) {
        if (await sendDigest(ctx)) days.push(formatTimestamp(ctx.clock.now()))
        ctx.clock.advance('15m')
      }
    }
    expect(days).to.deep.equal([
      ...['2026-10-25 00:30:00', '2026-10-26 01:30:00', '2026-10-27 01:30:00'],
      ...['2027-03-27 22:00:00', '2027-03-28 01:00:00', '2027-03-29 00:30:00', '2027-03-30 00:30:00'],
    ])
  })

  it('a digest counts every alert, and names the first hundred', async () => {
    open({ BILLING_ALERT_DIGEST: '08:00 Asia/Ho_Chi_Minh' })
    machine.space = { free: 0, size: 1 }
    await sendDigest(ctx)
    await evaluateAlerts(ctx, newMemory(ctx.clock.now()), { ...quiet(), disk_low: readers.disk_low })
    const [row] = await ctx.db.all(alerts, '')
    const more = rowsLike(row!, 129, (n) => ({ subject: `/data${n}`, openKey: `disk_low /data${n}` }))
    await insertMany(ctx.db, alerts, more)
    ctx.clock.set('2026-03-02 01:00:30')
    await sendDigest(ctx)
    const [digest] = await ctx.db.all(alertMessages, "WHERE type = 'alert.digest'")
    expect(digest!.subject).to.equal('130 open alerts, 0 alerts resolved since the last digest')
    expect(digest!.text.match(/^- disk_low/gm)).to.have.lengthOf(100)
    expect(digest!.text).to.include('\n- and 30 more: billing-cli alert list\n')
  })

  it('a digest names what is over once, also where it ends while the digest is written', async () => {
    open({ BILLING_ALERT_DIGEST: '08:00 Asia/Ho_Chi_Minh' })
    const memory = newMemory(ctx.clock.now())
    const only = { ...quiet(), disk_low: readers.disk_low }
    machine.space = { free: 0, size: 1 }
    await alertOnce(ctx, memory, only)
    machine.space = SPACE
    ctx.clock.set('2026-03-02 01:00:30')
    const all: TestContext['db']['all'] = async (row, sql, params) => {
      if (sql.includes('closed_at >= ?')) await evaluateAlerts(ctx, memory, only)
      return ctx.db.all(row, sql, params)
    }
    await sendDigest({ ...ctx, db: { ...ctx.db, all } })
    ctx.clock.advance('1d')
    await sendDigest(ctx)
    const digests = await ctx.db.all(alertMessages, "WHERE type = 'alert.digest' AND channel = 'webhook' ORDER BY id")
    expect(digests.map(({ subject }) => subject)).to.deep.equal([
      '1 open alert, 0 alerts resolved since the last digest',
      '0 open alerts, 1 alert resolved since the last digest',
    ])
  })

  it('a digest that cannot be composed holds back no alert, and goes out with the next evaluation', async () => {
    open({ BILLING_ALERT_DIGEST: '08:00 Asia/Ho_Chi_Minh' })
    const memory = newMemory(ctx.clock.now())
    await alertOnce(ctx, memory, quiet())
    ctx.clock.set('2026-03-02 01:00:30')
    machine.space = { free: 0, size: 1 }
    const only = { ...quiet(), disk_low: readers.disk_low }
    const all: TestContext['db']['all'] = (row, sql, params) =>
      sql.includes('flagged_payment') ? Promise.reject(new Error('busy')) : ctx.db.all(row, sql, params)
    await alertOnce({ ...ctx, db: { ...ctx.db, all } }, memory, only)
    expect(told()).to.deep.equal(['alert.opened disk_low /data'])
    await alertOnce(ctx, memory, only)
    expect(told().slice(1)).to.deep.equal(['alert.digest digest 1 open alert, 0 alerts resolved since the last digest'])
  })

  it('the ledger is verified once a night, and again each hour after a fault until it is fixed', async () => {
    await aLiveAppWithBank()
    const verify = () => verifyNightly(ctx, () => Promise.resolve())
    expect(await verify()).to.equal(true)
    expect(await verify()).to.equal(false)
    ctx.clock.set('2026-03-01 19:01:00')
    const { app } = await anApp(ctx)
    const at = ctx.clock.now()
    const broken = { provider: 'payos', reference: 'broken', amount: 100, amountLeft: 5, currency: 'VND' }
    const absent = { endUserId: null, providerAccountId: null, bankAccountId: null, chargeReference: null }
    await ctx.db.insert(payments, { appId: app.id, ...broken, ...absent, paidAt: at, receivedAt: at, closedAt: null })
    expect(await verify()).to.equal(true)
    const only = { ...quiet(), ledger_fault: READERS.ledger_fault }
    await evaluateAlerts(ctx, newMemory(ctx.clock.now()), only)
    const [fault] = await listAlerts(ctx)
    expect(fault!.subject).to.match(/^payment \d+$/)
    await ctx.db.update(payments, { reference: 'broken' }, { amountLeft: 100 })
    ctx.clock.advance('61m')
    expect(await verify()).to.equal(true)
    await evaluateAlerts(ctx, newMemory(ctx.clock.now()), only)
    expect((await listAlerts(ctx))[0]!.closed_at).to.not.equal(null)
  })

  it('that are over are deleted after 90 days by the database’s clock; a failure to do so is not one of the ledger', async () => {
    const [first, now] = [ctx.clock.now(), () => addMs(ctx.clock.now(), 3650 * DAY_MS)]
    const absent = { openKey: null, notifiedAt: null, isAnnounced: true }
    const closed = { since: first, openedAt: first, closedAt: first }
    await ctx.db.insert(alerts, { kind: 'disk_low', subject: '/data', text: 'full', ...absent, ...closed })
    ctx.clock.advance('90d')
    await deleteOld({ ...ctx, clock: { now, database: ctx.clock } })
    expect(await ctx.db.count(alerts, '')).to.equal(1)
    ctx.clock.advance('1s')
    await whileLacking(ctx.db, alerts, () => deleteOld(ctx))
    expect(ctx.logged.join()).to.include('old alerts could not be deleted').and.not.include('ledger')
    await deleteOld(ctx)
    expect(await ctx.db.count(alerts, '')).to.equal(0)
  })

  it('an account is silent on a day that usually has mails, not on a weekend, and not where days without mails are usual', () => {
    const everyDay = [0, ...Array.from({ length: 40 }, () => 3)]
    expect(isSilent(everyDay)).to.equal(true)
    expect(isSilent([1, ...everyDay.slice(1)])).to.equal(false)
    // Day 0 is a Sunday; Saturdays and Sundays have none.
    const workdays = Array.from({ length: 42 }, (_, day) => (day % 7 < 2 ? 0 : 4))
    expect(isSilent(workdays)).to.equal(false)
    expect(isSilent([0, ...workdays]), 'a Monday without mails').to.equal(true)
    expect(isSilent([0, 0, 1]), 'an account of three days').to.equal(false)
    const random = seededRandom(5)
    const sparse = Array.from({ length: 56 }, () => (random() < 0.4 ? 0 : 1))
    expect(isSilent([0, ...sparse])).to.equal(false)
  })

  it('a method fails where far fewer payments are completed than usual, which is no chance', () => {
    const usual = { begun: 200, paid: 150 }
    expect(isFarBelow({ begun: 20, paid: 0 }, usual)).to.equal(true)
    expect(isFarBelow({ begun: 20, paid: 12 }, usual)).to.equal(false)
    expect(isFarBelow({ begun: 3, paid: 0 }, usual), 'too few').to.equal(false)
    expect(isFarBelow({ begun: 20, paid: 0 }, { begun: 10, paid: 10 }), 'no history').to.equal(false)
    const random = seededRandom(11)
    for (let look = 0; look < 2000; look += 1) {
      const paid = Array.from({ length: 12 }, () => random()).filter((one) => one < 0.75).length
      expect(isFarBelow({ begun: 12, paid }, usual), `${paid} of 12`).to.equal(false)
    }
  })

  it('a silent bank is one that live apps use', async () => {
    const { accountId } = await aLiveAppWithBank()
    await mailsEachDay(accountId)
    const look = { now: addMs(ctx.clock.now(), 12 * HOUR_MS), open: [], memory: newMemory(ctx.clock.now()) }
    expect((await bankSilent(ctx, look)).map(({ subject }) => subject)).to.deep.equal([`bank account ${accountId}`])
    await ctx.db.update(apps, { isSandbox: false }, { isSandbox: true })
    expect(await bankSilent(ctx, look)).to.deep.equal([])
    expect(await ctx.db.count(providerPauses, '')).to.equal(0)
  })

  /** Readers that find nothing. */
  function quiet(): Readers {
    return Object.fromEntries(ALERT_KINDS.map((kind) => [kind, () => Promise.resolve([])])) as unknown as Record<
      AlertKind,
      () => Promise<[]>
    >
  }
})
