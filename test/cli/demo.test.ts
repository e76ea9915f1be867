import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { perform } from '#commands/perform.ts'
import { operator } from '#commands/caller.ts'
import { DEMO_KEY } from '#demo/mark.ts'
import { removeDemo } from '#demo/remove-demo.ts'
import { SCENARIOS, type Step } from '#demo/scenarios.ts'
import { appNamed } from '#apps/find-app.ts'
import type { App } from '#apps/store.ts'
import { sendDueReminders } from '#mails/reminders/send-due-reminders.ts'
import { addMs, asAppTime, asRealTime, DAY_MS, formatTimestamp, type AppTime } from '#shared/time.ts'
import { periodFrom, type Period } from '#subscriptions/period.ts'
import { SmtpInbox } from '../mail/smtp-inbox.ts'
import { realTimeContext } from '../support/context.ts'
import { everyRow, testDatabase } from '../support/database.ts'
import { refusalOf } from '../support/expect-error.ts'
import { aPlan, anApp, aSubscription, transferred } from '../support/factories.ts'
import { itRunsEveryForm } from './forms.ts'
import { openCli, type Cli } from './run-cli.ts'
import type { Shown } from './shown.ts'
import { onSimulatedTerminal } from './simulated-terminal.ts'
import { ENTER } from './terminal.ts'

const TRIAL = { unit: 'day', count: 7 } as const
const INTERVALS = {
  Monthly: { unit: 'month', count: 1 },
  Yearly: { unit: 'year', count: 1 },
  Lifetime: { unit: 'lifetime', count: 1 },
} as const

/** How often a payment comes after the end of the period before it. */
function lapsesOf(steps: readonly Step[], start: AppTime): number {
  let lapses = 0
  let period: Period | null = null
  for (const step of steps) {
    if (step.action !== 'pay' && step.action !== 'start trial') continue
    const at = addMs(start, step.day * DAY_MS)
    if (period?.end && at >= period.end) {
      lapses += 1
      period = null
    }
    const interval = step.action === 'pay' ? INTERVALS[step.price[1]] : TRIAL
    period = periodFrom(period?.end ?? at, interval, period?.anchorDay ?? null)
  }
  return lapses
}

/** Their rows belong to no app and are deleted after a day. */
const WITHOUT_APP = ['commit_tokens', 'job_runs']
/** Rows of these come from outside: the demo has none, and one that has some is not removed. */
const FROM_OUTSIDE = ['bank_mails', 'provider_events', 'provider_sessions']

describe('the command line: the demo', () => {
  let cli: Cli
  let inbox: SmtpInbox

  beforeEach(async () => {
    inbox = await SmtpInbox.open()
    const mail = { BILLING_SMTP_URL: inbox.url, BILLING_MAIL_FROM: 'pay@shop.example' }
    cli = openCli({ ...mail, BILLING_REFUND_LIMIT: '1:VND,1:USD' })
  })

  afterEach(() => inbox.stop())

  it('tells of the same lapses on whatever day it is made', () => {
    for (let days = 0; days < 4 * 366; days += 1) {
      const start = addMs(asAppTime(new Date('2027-01-01T10:00:00Z')), days * DAY_MS)
      for (const { externalRef, steps } of SCENARIOS) {
        const expected = externalRef === 'lapsed-and-returned' ? 1 : 0
        expect(lapsesOf(steps, start), `${externalRef}, from ${formatTimestamp(start)} on`).to.equal(expected)
      }
    }
  })

  it('has a year of consistent history, sends nothing to anybody, and is removed without a trace', async () => {
    const ctx = realTimeContext()
    const other = await anApp(ctx)
    await aSubscription(ctx, other, await aPlan(ctx, other))
    const before = await rowsOfApps()
    const failuresBefore = await failures(cli)

    const planned = await cli.preview(['demo'])
    expect(await cli.table(['demo', '--dry-run'])).to.include(`${planned.customers} customers`)
    expect(await rowsOfApps()).to.deep.equal(before)

    const paidMonths = lastMonths(12)
    const made = await cli.json(['demo'])
    expect({ ...planned, ...made }).to.deep.include({ ...planned, api_key: DEMO_KEY })
    const id = String(made.app_id)
    const app = await appNamed(ctx, DEMO_KEY)
    expect([app.isSandbox, app.webhookUrl, app.clockOffsetMs]).to.deep.equal([true, null, 0])
    expect(await cli.refused(['demo'])).to.include('demo --remove')
    expect(await cli.refused(['demo', '--dry-run'])).to.include('demo --remove')

    const verified = await cli.json(['ledger', 'verify', '--app', id])
    expect(verified.faults).to.deep.equal([])
    expect(verified.checked).to.equal(planned.customers - 2)
    expect(await failures(cli)).to.deep.equal(failuresBefore)
    expect(await cli.json(['transaction', 'list', '--app', id, '--flagged'])).to.have.length(1)

    const { cash, subscriptions, revenue } = await cli.json(['stats', id])
    const months = cash.filter((row) => row.currency === 'VND').map((row) => row.month)
    expect(months).to.include.members(paidMonths)
    expect(months.length).to.equal(new Set(months).size)
    const payments = revenue.map((row) => row.payments)
    expect(payments.reduce((sum: number, each: number) => sum + each)).to.equal(planned.payments)
    expect(subscriptions.active).to.be.greaterThan(5)
    expect(subscriptions.lifetime).to.equal(1)

    await sendDueReminders(ctx, { appId: app.id })
    expect(inbox.mails).to.deep.equal([])
    expect(await counted('reminders', 'app_id = ?', app.id)).to.equal(0)
    expect(await counted('subscriptions', 'app_id = ? AND reminders_stopped_at IS NULL', app.id)).to.equal(0)
    expect(await counted('events', `app_id = ? AND delivery_status <> 'not_configured'`, app.id)).to.equal(0)

    const shown = await cli.preview(['demo', '--remove'])
    expect(shown.dry_run).to.equal(true)
    expect(await cli.misused(['demo', '--remove'])).to.include('--yes')
    expect(await counted('apps', 'id = ?', app.id)).to.equal(1)
    const removed = await cli.json(['demo', '--remove', '--yes'])
    expect(removed.rows).to.deep.equal(shown.rows)
    expect(removed.rows.payments).to.equal(planned.payments)

    expect(await rowsOfApps()).to.deep.equal(before)
    const tables = await tablesOfApps()
    expect(tables.filter((table) => ![...Object.keys(removed.rows), ...FROM_OUTSIDE].includes(table))).to.deep.equal([
      'audit_log',
    ])
    const [newest] = await cli.json(['audit', 'list'])
    expect([newest!.action, newest!.app_id, newest!.before!.rows]).to.deep.equal(['demo.remove', app.id, removed.rows])
    expect(await cli.misused(['demo', '--remove'])).to.include('no demo')
  })

  it('shows its progress on a terminal, and asks before it is removed', async () => {
    const made = await onSimulatedTerminal(cli.env, ['demo'], [])
    expect(made.code).to.equal(0)
    expect(made.text).to.match(/\d+ of \d+ steps of the year/)
    expect(made.text).to.include('[TEST] Demo')
    const declined = await onSimulatedTerminal(cli.env, ['demo', '--remove'], [['for good?', ENTER]])
    expect([declined.code, declined.left]).to.deep.equal([1, []])
    const removed = await onSimulatedTerminal(cli.env, ['demo', '--remove'], [['for good?', `y${ENTER}`]])
    expect([removed.code, removed.left]).to.deep.equal([0, []])
    expect(removed.text).to.include('is removed').and.include('transactions')
  })

  it('removes no other app, and no app that real money has reached', async () => {
    const ctx = realTimeContext()
    const caller = operator('tester')
    const other = await anApp(ctx)
    const removal = async (app: App) => (await refusalOf(perform(ctx, caller, removeDemo, undefined, { app }))).message
    expect(await removal(other.app)).to.include('not the demo')
    await cli.json(['demo'])
    const app = await appNamed(ctx, DEMO_KEY)
    await testDatabase().db.query('UPDATE apps SET is_sandbox = 0 WHERE id = ?', [app.id])
    expect(await removal(app)).to.include('not the demo')
    await testDatabase().db.query('UPDATE apps SET is_sandbox = 1 WHERE id = ?', [app.id])
    const [flagged] = await cli.json(['transaction', 'list', '--app', String(app.id), '--flagged'])
    const outcome = await transferred(ctx, flagged!.transaction_id, 9_000, { paidAt: asRealTime(new Date()) })
    expect(outcome.kind).to.equal('processed')
    const rows = await rowsOfApps()
    expect(await cli.refused(['demo', '--remove', '--yes'])).to.include(`app disable ${app.id}`)
    expect(await rowsOfApps()).to.deep.equal(rows)
    await cli.expectErrors([2, ['demo', '--yes'], '--remove'])
  })

  itRunsEveryForm('demo.test.ts')
})

/** The checks of doctor that fail. */
async function failures(cli: Cli): Promise<string[]> {
  const ran = await cli.run(['doctor', '--json'])
  const checks = JSON.parse(ran.stdout) as Shown<'doctor'>
  return checks.flatMap(({ ok, check, detail }) => (ok ? [] : [`${check}: ${detail}`]))
}

/** Up to the month of yesterday, when the last payment was made. */
function lastMonths(count: number): string[] {
  const now = addMs(new Date(), -DAY_MS)
  return Array.from({ length: count }, (_, back) =>
    formatTimestamp(new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back))).slice(0, 7),
  )
}

async function tablesOfApps(): Promise<string[]> {
  const rows = await testDatabase().db.query<{ name: string }[]>(
    `SELECT table_name AS name FROM information_schema.columns
     WHERE table_schema = DATABASE() AND column_name = 'app_id' ORDER BY table_name`,
  )
  return rows.map(({ name }) => name)
}

async function counted(table: string, condition: string, appId: number): Promise<number> {
  const [row] = await testDatabase().db.query<{ n: string }[]>(
    `SELECT COUNT(*) AS n FROM ${table} WHERE ${condition}`,
    [appId],
  )
  return Number(row?.n)
}

/** Every row of the tables whose rows belong to apps, but the audit log. */
async function rowsOfApps(): Promise<Record<string, unknown>> {
  const rows = Object.entries(await everyRow())
  return Object.fromEntries(rows.filter(([name]) => name !== 'audit_log' && !WITHOUT_APP.includes(name)))
}
