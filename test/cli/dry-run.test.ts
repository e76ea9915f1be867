import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { bankMails } from '#bank-mail/store.ts'
import { createProgram } from '#cli/program.ts'
import { events } from '#webhooks/store.ts'
import { addBankAccount, enableMethod } from '../support/operators.ts'
import { realTimeContext } from '../support/context.ts'
import { everyRow, testDatabase } from '../support/database.ts'
import { openDocPage } from '../support/doc-page.ts'
import { aCustomer, anApp, aPlan, aPromotion, aSubscription, MONTHLY, priceId, YEARLY } from '../support/factories.ts'
import { scratchFolder } from '../support/scratch.ts'
import { aServiceAccountFile } from '../support/service-account.ts'
import { leavesOf } from './forms.ts'
import { openCli } from './run-cli.ts'
import { anUnconfirmedReceipt, anUnconfirmedReminder, unmatchedMoney } from './states.ts'

/** Commands that change nothing in the database. */
const READS = [
  ...['app list', 'app show', 'method list', 'notification list', 'bank-account list', 'bank-mail list'],
  ...['payment list', 'payment show'],
  ...[
    'bank-mail forwarding',
    'plan list',
    'plan show',
    'promotion list',
    'promotion show',
    'customer list',
    'customer show',
    'subscription list',
  ],
  ...[
    'review',
    'console',
    'subscription show',
    'transaction list',
    'transaction show',
    'ledger verify',
    'webhook list',
    'webhook show',
    'reminders plan',
  ],
  ...[
    'reminders unconfirmed',
    'receipts unconfirmed',
    'audit list',
    'operator list',
    'approval list',
    'approval show',
    'as',
    'backup create',
    'backup list',
    'backup verify',
    'key export',
    'stats',
    'doctor',
    'docs',
    'completion',
    'find',
    'open',
    'listen',
    'alert list',
    'watch',
  ],
]
/** R264: these have no transaction to roll back. */
const EXEMPT = ['migrate', 'reconcile', 'mail test', 'webhook test', 'alert test', 'app export']
/** These have their own preview, which their own tests cover. */
const PREVIEWED = [
  ...['bank-mail match', 'bank-mail close', 'subscription import', 'transaction resolve'],
  ...[
    'realtime resync',
    'setup',
    'service install',
    'request',
    'trigger',
    'demo',
    'upgrade',
    'approval grant',
    'approval deny',
  ],
  'backup restore',
]

describe('--dry-run', () => {
  it('is an option of every command that changes something', async () => {
    const without = leavesOf(await createProgram())
      .filter(({ command }) => !command.options.some(({ long }) => long === '--dry-run'))
      .map(({ path }) => path.join(' '))
    expect(without.sort()).to.deep.equal([...READS, ...EXEMPT].sort())
  })

  it('is missing where docs/cli.md says so, and nowhere else', () => {
    const [exceptions = ''] =
      /The exceptions are [^.]*, which have no transaction/.exec(openDocPage('docs/cli.md').text) ?? []
    expect([...exceptions.matchAll(/`(.+?)`/g)].map(([, command]) => command)).to.have.members(EXEMPT)
  })

  it('shows what each command would change and which events it would send, and changes nothing', async () => {
    const cli = openCli()
    const ctx = realTimeContext()
    const seller = await anApp(ctx, { webhookUrl: 'http://127.0.0.1:9/hook' })
    const clients = await anApp(ctx, { auth: 'identity' })
    const plan = await aPlan(ctx, seller, { code: 'pro', prices: [MONTHLY, YEARLY] })
    await aSubscription(ctx, seller, plan)
    const promotion = await aPromotion(ctx, seller, { code: 'OFFER' })
    for (const secretKey of ['sk_test_1', 'sk_test_2'])
      await enableMethod(ctx, 'tester', seller.app, 'card', { secretKey, webhookSecret: 'whsec_1' })
    const customer = await aCustomer(ctx, seller)
    const account = await addBankAccount(ctx, 'tester', { bank: 'ACB', number: '12345678', holder: 'NGUYEN VAN AN' })
    const { transaction, mail } = await unmatchedMoney(ctx, seller, 99_000)
    const payment = String((await ctx.db.one(bankMails, 'WHERE id = ?', [mail]))!.paymentId)
    const other = await anApp(ctx)
    const reminder = String(await anUnconfirmedReminder(ctx, other))
    const receipt = String(await anUnconfirmedReceipt(ctx, other))
    const file = join(scratchFolder('cli'), 'service-account.json')
    writeFileSync(file, aServiceAccountFile())
    const event = await testDatabase().db.one(events, 'WHERE app_id = ? ORDER BY id LIMIT 1', [seller.app.id])
    const [app, client, planId, accountId] = [seller.app.id, clients.app.id, `plan_${plan.id}`, account.id].map(
      String,
    ) as [string, string, string, string]
    const monthly = priceId(plan)
    const yearly = priceId(plan, 1)

    const rows: readonly (readonly [
      words: readonly string[],
      changes: readonly string[],
      events: readonly string[],
    ])[] = [
      [['app', 'create', '--name', 'New', '--auth', 'hmac'], ['app'], []],
      [['app', 'update', app, '--name', 'New'], [`app ${app}`], []],
      [['app', 'disable', app], [`app ${app}`], []],
      [['app', 'enable', app], [`app ${app}`], []],
      [['app', 'rotate-secret', app], [`app ${app}`], []],
      [['app', 'rotate-webhook-secret', app], [`app ${app}`], []],
      [['app', 'rotate-webhook-secret', app, '--prepare'], [`app ${app}`], []],
      [['app', 'set-identity', client, '--firebase-project', 'my-project'], [`app ${client}`], []],
      [
        ['app', 'set-realtime', client, '--database-url', 'https://x.firebaseio.com', '--service-account', file],
        [`app ${client}`],
        [],
      ],
      [['app', 'clock', app, '--advance', '40d'], [`app ${app}`], []],
      [['method', 'enable', app, 'test'], [`app ${app}`], []],
      [['method', 'disable', app, 'test'], [`app ${app}`], []],
      [['method', 'forget', app, 'card', '--version', '1'], [`app ${app}`], []],
      [['bank-account', 'add', '--bank', 'VCB', '--number', '1', '--holder', 'AN'], ['bank account'], []],
      [['bank-account', 'assign', app, accountId], [`app ${app}`], []],
      [['bank-account', 'update', accountId, '--mailbox', 'a@b.example'], [`bank account ${accountId}`], []],
      [['bank-account', 'disable', accountId], [`bank account ${accountId}`], []],
      [['plan', 'create', app, '--code', 'max', '--name', 'Max', '--price', '1000:VND:month'], ['plan'], []],
      [['plan', 'update', app, planId, '--name', 'New'], [`plan ${plan.id}`], []],
      [['plan', 'archive', app, planId], [`plan ${plan.id}`], []],
      [['plan', 'restore', app, planId], [`plan ${plan.id}`], []],
      [['promotion', 'create', app, '--code', 'TET', '--percent', '20'], ['promotion'], []],
      [['promotion', 'archive', app, 'OFFER'], [`promotion ${promotion.id}`], []],
      [['promotion', 'restore', app, 'OFFER'], [`promotion ${promotion.id}`], []],
      [['price', 'add', app, planId, '--price', '1000:VND:month'], [`plan ${plan.id}`], []],
      [['price', 'archive', app, planId, monthly], [`price ${monthly.slice(6)}`], []],
      [['price', 'restore', app, planId, monthly], [`price ${monthly.slice(6)}`], []],
      [['subscription', 'switch-plan', app, 'user-1', yearly], ['subscription'], ['subscription.updated']],
      [
        ['subscription', 'attach-customer', app, 'user-1', `cus_${customer.id}`],
        ['subscription'],
        ['subscription.updated'],
      ],
      [['subscription', 'end', app, 'user-1', '--note', 'refunded'], ['subscription'], ['subscription.updated']],
      [
        ['payment', 'move', payment, String(transaction), '--note', 'n'],
        [`payment ${payment}`],
        ['subscription.renewed', 'subscription.updated'],
      ],
      [['payment', 'refund', payment, '--reference', 'FT', '--note', 'n'], [`payment ${payment}`], []],
      [['payment', 'close', payment, '--note', 'n'], [`payment ${payment}`], []],
      [['subscription', 'reminders', app, 'user-1', 'off'], ['subscription'], []],
      [['webhook', 'retry', `evt_${event!.id}`], [`evt_${event!.id}`], []],
      [['reminders', 'settle', reminder, '--sent'], [`reminder ${reminder}`], ['subscription.renewal_reminder_sent']],
      [['reminders', 'refused', '--retry'], [], []],
      [['receipts', 'settle', receipt, '--not-sent'], [`receipt ${receipt}`], []],
      [['operator', 'add', 'minh', '--role', 'view'], ['operator minh'], []],
      [['operator', 'set-role', 'linh', 'money'], ['operator linh'], []],
      [['operator', 'remove', 'linh'], ['operator linh'], []],
      [['alert', 'mute', 'disk_low', '--for', '12h'], ['alert disk_low'], []],
      [['key', 'rotate'], [], []],
    ]
    const commands = leavesOf(await createProgram())
      .filter(({ command }) => command.options.some(({ long }) => long === '--dry-run'))
      .map(({ path }) => path.join(' '))
    const run = rows.map(([words]) => words.slice(0, words[1]?.startsWith('-') === true ? 1 : 2).join(' '))
    expect([...new Set([...run, ...PREVIEWED])].sort()).to.deep.equal(commands.sort())

    await cli.json(['operator', 'add', 'linh', '--role', 'view'])
    const before = await everyRow()
    for (const [words, subjects, events] of rows) {
      const shown = await cli.preview(words)
      expect(shown.dry_run, words.join(' ')).to.equal(true)
      expect(shown.changes, words.join(' ')).to.have.length(subjects.length)
      for (const [index, subject] of subjects.entries()) expect(shown.changes[index]!.subject).to.include(subject)
      const types = shown.events.map((each) => each.event_type)
      expect(types, words.join(' ')).to.deep.equal(events)
    }
    expect(await everyRow()).to.deep.equal(before)
    const text = await cli.table(['app', 'update', app, '--name', 'New', '--dry-run'])
    const banner = `[TEST] Reader (app ${app})`
    expect(text).to.equal(`${banner}\nwould change app ${app} (app.update)\n  name: Reader → New\n`)
    expect(await cli.table(['app', 'enable', app, '--dry-run'])).to.equal(
      `${banner}\napp ${app} would stay as it is (app.enable)\n`,
    )
    expect(await cli.table(['subscription', 'reminders', app, 'user-1', 'off', '--dry-run'])).to.match(
      /\(subscription\.reminders-off\)\n {2}reminders: on → off\n$/,
    )
    const deciding = [`bank-mail match ${mail} ${transaction}`, `transaction resolve ${transaction} --action complete`]
    for (const words of deciding)
      expect(await cli.table([...words.split(' '), '--dry-run']), words).to.include(
        'the app is sent subscription.renewed, subscription.updated',
      )
    const attach = ['subscription', 'attach-customer', app, 'user-1', `cus_${customer.id}`, '--dry-run']
    expect(await cli.table(attach)).to.match(
      /would send subscription\.updated\n {2}external_ref: user-1\n {2}paygate_customer_id: cus_\d+\n/,
    )
    for (const words of [...deciding, `trigger ${app} subscription.updated`])
      expect(await cli.table([...words.split(' '), '--dry-run']), words).to.match(/^\[TEST\] Reader \(app \d+\)\n/)
  })
})
