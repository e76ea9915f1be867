import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { bankMails } from '#bank-mail/store.ts'
import { createProgram } from '#cli/program.ts'
import { payments } from '#payments/store.ts'
import { events } from '#webhooks/store.ts'
import { realTimeContext } from '../support/context.ts'
import { testDatabase } from '../support/database.ts'
import { addBankAccount } from '../support/operators.ts'
import { scratchFolder } from '../support/scratch.ts'
import { leavesOf } from './forms.ts'
import { openCli, type Cli } from './run-cli.ts'
import { onSimulatedTerminal } from './simulated-terminal.ts'
import { aBusyService, type BusyService } from './states.ts'

/** Right-to-left override and isolate, marks, separators of lines, C1, an escape sequence, a bell, and a forged line. */
const DIRECTIONS = '\u202e\u2066\u061c\u200e\u200f\u2028\u2029\u0085\u009b'
const HOSTILE = `${DIRECTIONS}\u001b[31m\u0007\nfaked`
const STEERS = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/
/** What a terminal gets from us: colours, and cleared lines of progress. */
const OURS = /\u001b\[[\d;]*[mK]|\r/g

/** Columns for text that other people write. */
const WRITTEN: readonly (readonly [table: string, column: string])[] = [
  ['apps', 'name'],
  ['plans', 'name'],
  ['plans', 'description'],
  ['prices', 'name'],
  ['customers', 'name'],
  ['customers', 'merchant_customer_id'],
  ['transactions', 'plan_name'],
  ['transaction_changes', 'note'],
  ['allocations', 'note'],
  ['receipts', 'last_error'],
  ['reminders', 'last_error'],
  ['events', 'last_error'],
  ['delivery_attempts', 'error'],
  ['bank_accounts', 'holder'],
  ['audit_log', 'actor'],
  ['audit_log', 'reason'],
  ['payments', 'reference'],
  ['bank_mails', 'message_id'],
]
/** JSON, in which control characters are escaped. */
const DOCUMENTS: readonly (readonly [table: string, column: string])[] = [
  ['events', 'body'],
  ['audit_log', 'before_state'],
  ['audit_log', 'after_state'],
]

/** Commands that print nothing that other people wrote, or that go through the same lines as the dry runs below. */
const OTHERS = [
  ...['app create', 'app set-identity', 'app set-realtime', 'app disable', 'app enable', 'app rotate-secret'],
  ...['app rotate-webhook-secret', 'method enable', 'method disable', 'method forget', 'bank-account add'],
  ...['bank-account disable', 'plan archive', 'plan restore', 'price add', 'price archive', 'price restore'],
  ...['promotion create', 'promotion list', 'promotion show', 'promotion archive', 'promotion restore'],
  ...['subscription switch-plan', 'subscription import', 'payment move', 'payment refund', 'bank-mail match'],
  ...['reminders settle', 'receipts settle', 'webhook test', 'trigger', 'demo', 'mail test', 'reconcile', 'migrate'],
  ...[
    'key rotate',
    'setup',
    'service install',
    'docs',
    'completion',
    'plan create',
    'bank-account assign',
    'app clock',
  ],
  ...['operator add', 'operator list', 'operator set-role', 'operator remove', 'as', 'approval grant', 'approval deny'],
  ...['approval show', 'approval list', 'backup create', 'backup list'],
  ...['backup verify', 'backup restore', 'key export', 'upgrade'],
  ...['alert list', 'alert test', 'alert mute'],
]

describe('text that would steer a terminal', () => {
  let cli: Cli
  let made: BusyService
  let rows: (readonly string[])[]

  beforeEach(async () => {
    cli = openCli()
    const ctx = realTimeContext()
    made = await aBusyService(ctx)
    const account = await addBankAccount(ctx, 'linh', { bank: 'ACB', number: '257678859', holder: 'NGUYEN VAN A' })
    const { db } = testDatabase()
    const event = await db.one(events, 'WHERE app_id = ? ORDER BY id DESC LIMIT 1', [made.reader.app.id])
    const refs = await db.query<{ name: string }[]>(
      "SELECT table_name AS name FROM information_schema.columns WHERE table_schema = DATABASE() AND column_name = 'external_ref'",
    )
    for (const { name } of refs) await db.query(`UPDATE ${name} SET external_ref = CONCAT(external_ref, ?)`, [HOSTILE])
    for (const [table, column] of WRITTEN)
      await db.query(`UPDATE ${table} SET ${column} = CONCAT(COALESCE(${column}, id), ?)`, [HOSTILE])
    for (const [table, column] of DOCUMENTS)
      await db.query(`UPDATE ${table} SET ${column} = REPLACE(${column}, ':"', ?)`, [`:"${DIRECTIONS}`])
    const app = String(made.reader.app.id)
    const user = `user-1${HOSTILE}`
    const flagged = String(made.flagged)
    const payment = await db.one(payments, 'WHERE app_id IS NULL ORDER BY id DESC LIMIT 1')
    const mail = await db.one(bankMails, "WHERE review = 'credit' ORDER BY id LIMIT 1")
    const note = ['--note', `because${HOSTILE.replace(/\p{Cc}/gu, '')}`]
    rows = [
      ['find', user],
      ['open', flagged, '--print'],
      ['app', 'list'],
      ['app', 'show', app],
      ['app', 'export', app, '--dir', scratchFolder('export')],
      ['app', 'update', app, '--name', 'Books', '--dry-run'],
      ['method', 'list', app],
      ['notification', 'list'],
      ['bank-account', 'list'],
      ['bank-account', 'update', String(account.id), '--mailbox', 'a@b.example', '--dry-run'],
      ['bank-mail', 'list'],
      ['bank-mail', 'forwarding'],
      ['bank-mail', 'close', String(mail!.id), ...note, '--dry-run'],
      ['plan', 'list', app],
      ['plan', 'show', app, made.plan],
      ['plan', 'update', app, made.plan, '--name', 'New', '--dry-run'],
      ['customer', 'list', app],
      ['customer', 'show', app, 'cus_1'],
      ['subscription', 'list', app],
      ['subscription', 'show', app, user],
      ['subscription', 'attach-customer', app, user, 'cus_1', '--dry-run'],
      ['subscription', 'end', app, user, ...note, '--dry-run'],
      ['subscription', 'reminders', app, user, 'off', '--dry-run'],
      ['transaction', 'list'],
      ['transaction', 'show', flagged],
      ['transaction', 'resolve', flagged, '--action', 'complete', ...note, '--dry-run'],
      ['ledger', 'verify'],
      ['payment', 'list'],
      ['payment', 'show', String(payment!.id)],
      ['payment', 'close', String(payment!.id), ...note, '--dry-run'],
      ['webhook', 'list', app],
      ['webhook', 'show', `evt_${event!.id}`],
      ['webhook', 'retry', `evt_${event!.id}`, '--dry-run'],
      ['listen', app, '--since', '1d', '--count', '1'],
      ['request', app, 'POST', '/customers', '--data', JSON.stringify({ name: HOSTILE }), '--dry-run'],
      ['reminders', 'plan', '--days', '40'],
      ['reminders', 'unconfirmed'],
      ['reminders', 'refused'],
      ['receipts', 'unconfirmed'],
      ['realtime', 'resync', app, user, '--dry-run'],
      ['audit', 'list'],
      ['stats', app],
      ['review'],
      ['console', '--once'],
      ['watch', '--once'],
      ['doctor'],
    ]
  })

  it('is printed by every command with each such character escaped, as a table, as JSON and on a terminal', async () => {
    const commands = leavesOf(await createProgram()).map(({ path }) => path)
    const left = commands.filter((path) => !rows.some((words) => path.every((word, index) => words[index] === word)))
    expect(left.map((path) => path.join(' ')).sort()).to.deep.equal([...OTHERS].sort())
    let escaped = 0
    for (const words of rows) {
      const name = words.slice(0, 3).join(' ')
      for (const form of [[], ['--json']]) {
        const { code, stdout, stderr } = await cli.run([...words, ...form])
        expect(code, `${name}: ${stderr}`).to.be.oneOf([0, 1])
        for (const printed of [stdout, stderr]) {
          expect(STEERS.exec(printed)?.[0], `${name}: ${JSON.stringify(printed)}`).to.equal(undefined)
          expect(printed, name).not.to.match(/^faked/m)
        }
        if (/\\u202e/.test(stdout)) escaped += 1
      }
      if (words[0] === 'listen') continue
      const { raw } = await onSimulatedTerminal(cli.env, words, [], 120)
      expect(STEERS.exec(raw.replaceAll(OURS, ''))?.[0], `${name} on a terminal`).to.equal(undefined)
    }
    // Otherwise the texts above were in no output, and nothing was shown.
    expect(escaped).to.be.above(40)
  })

  it('is escaped in errors, in questions and in completions', async () => {
    const app = String(made.reader.app.id)
    const missing = await cli.run(['subscription', 'show', app, `nobody${DIRECTIONS}`])
    expect([missing.code, STEERS.test(missing.stderr)]).to.deep.equal([1, false])
    const usage = await cli.run(['plan', 'list', app, `--nonsense${DIRECTIONS}`])
    expect([usage.code, STEERS.test(usage.stderr)]).to.deep.equal([2, false])
    const asked = await onSimulatedTerminal(cli.env, ['app', 'disable', app], [['Disable', 'n\r']], 120)
    expect(asked.raw).to.contain('\\u202e')
    for (const words of [
      ['app', 'show'],
      ['plan', 'show', app],
      ['subscription', 'show', app],
    ]) {
      const { stdout } = await cli.run(['complete', ...words, ''])
      expect(STEERS.exec(stdout.replaceAll('\t', ''))?.[0], words.join(' ')).to.equal(undefined)
    }
  })
})
