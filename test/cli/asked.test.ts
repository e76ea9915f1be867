import { perform } from '#commands/perform.ts'
import { operator } from '#commands/caller.ts'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { neededArguments } from '#cli/examples.ts'
import { createProgram } from '#cli/program.ts'
import type { Context } from '#context.ts'
import { setRealtime } from '#apps/set-realtime.ts'
import { getApp } from '#apps/store.ts'
import { METHODS } from '#providers/providers.ts'
import { events } from '#webhooks/store.ts'
import { addBankAccount, enableMethod } from '../support/operators.ts'
import { realTimeContext } from '../support/context.ts'
import {
  aCustomer,
  anApp,
  aPlan,
  aPromotion,
  aSubscription,
  MONTHLY,
  partlyPaid,
  priceId,
  YEARLY,
  type TestApp,
} from '../support/factories.ts'
import { Receiver } from '../support/receiver.ts'
import { startRealtimePeer } from '../support/realtime-peer.ts'
import { scratchFolder } from '../support/scratch.ts'
import { aServiceAccountFile } from '../support/service-account.ts'
import { leavesOf, othersPassed } from './forms.ts'
import { openCli } from './run-cli.ts'
import { aBankMail, anOpenApproval, anUnconfirmedReceipt, anUnconfirmedReminder, unmatchedMoney } from './states.ts'
import { onSimulatedTerminal } from './simulated-terminal.ts'
import { DOWN, ENTER, type Step } from './terminal.ts'
import { openEmptyDatabase } from '../support/database.ts'

/** A command, its questions with their answers, and what the screen shows in the end. */
type Dialogue = readonly [command: string, steps: readonly Step[], shows: string | RegExp, options?: readonly string[]]

/** Commands that ask on a terminal although all their arguments are optional. */
const ASK_FOR_OPTIONS = ['app create', 'bank-account add', 'webhook retry', 'key export']

/** No question breaks, however long the ids are that it names. */
const WIDE = 120

const pick = (question: string, downs = 0): Step => [question, DOWN.repeat(downs) + ENTER]
const type = (question: string, text: string): Step => [question, text + ENTER]
const yes = (question: string): Step => [question, `y${ENTER}`]
const APP = pick('Which app?')
const PHONE = pick('Which app?', 1)

describe('a missing argument is asked for on a terminal', () => {
  let ctx: Context
  let app: TestApp
  const tested = new Set<string>()
  const stops: (() => Promise<void>)[] = []

  beforeEach(async () => {
    // The program's clock is the machine's.
    ctx = realTimeContext()
    app = await anApp(ctx)
  })

  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop()
  })

  async function hold(dialogues: readonly Dialogue[], settings: Readonly<Record<string, string>> = {}): Promise<void> {
    const { env } = openCli(settings)
    for (const [command, steps, shows, options = []] of dialogues) {
      const screen = await onSimulatedTerminal(env, [...command.split(' '), ...options], steps, WIDE)
      expect([screen.code, screen.left], `${command}: ${screen.text}`).to.deep.equal([0, []])
      if (typeof shows === 'string') expect(screen.text, command).to.include(shows)
      else expect(screen.text, command).to.match(shows)
      tested.add(command)
    }
  }

  it('by commands for apps, their secrets and methods', async () => {
    for (const secretKey of ['sk_test_1', 'sk_test_2'])
      await enableMethod(ctx, 'tester', app.app, 'card', { secretKey, webhookSecret: 'whsec_1' })
    await anApp(ctx, { name: 'Phone', auth: 'identity' })
    const folder = scratchFolder('cli')
    const account = join(folder, 'account.json')
    writeFileSync(account, aServiceAccountFile())
    await hold([
      ['app create', [type('Name of the app', 'Third'), pick('How does it authenticate', 1)], 'api_key'],
      ['app show', [APP], '[TEST] Reader'],
      ['app update', [APP], 'https://shop.example/h', ['--webhook-url', 'https://shop.example/h']],
      ['app enable', [APP], /disabled +no/],
      ['app rotate-secret', [APP, yes('The old secret stops working immediately. Continue?')], 'not shown again'],
      // The app has none yet, so nothing stops working and nothing is confirmed.
      ['app rotate-webhook-secret', [PHONE], 'whsec_'],
      [
        'app set-identity',
        [PHONE, pick('Who issues the tokens?'), type('--firebase-project', 'demo-proj')],
        'demo-proj',
      ],
      [
        'app set-realtime',
        [PHONE, type('--database-url', 'https://demo-proj.firebaseio.com'), type('--service-account', account)],
        'https://demo-proj.firebaseio.com',
      ],
      ['app clock', [APP], 'it is 20'],
      ['find', [type('Name, e-mail, reference, id, code or link', 'nobody')], 'Nothing found.'],
      ['open', [type('Checkout, transaction, end user or customer', 'api')], '/docs', ['--print']],
      ['operator add', [type('Name of the operator', 'linh'), pick('What may the operator do?', 1)], 'restrict,pty'],
      ['operator set-role', [pick('Which operator?'), pick('What may the operator do?', 2)], 'has the role money'],
      ['operator remove', [pick('Which operator?'), yes('Remove operator linh?')], 'is no operator any more'],
      ['completion', [pick('Of which shell?')], 'complete'],
      ['alert mute', [pick('Which kind?', 1), type('For how long?', '2h')], 'webhooks_failed is muted until'],
      ['app export', [APP, type('Folder', join(folder, 'export'))], 'customers'],
      ['method enable', [APP, pick('Which method?', METHODS.indexOf('bank_transfer'))], /bank_transfer +yes/],
      ['method disable', [APP, pick('Which method?', METHODS.indexOf('test'))], /test +no/],
      [
        'method forget',
        [APP, pick('Which method?', METHODS.indexOf('card')), pick('Which version?', 1), yes('Forget version 1')],
        'forgotten',
      ],
      ['method list', [APP], 'bank_transfer'],
    ])
    await hold([
      [
        'app set-identity',
        [
          PHONE,
          pick('Who issues the tokens?', 1),
          type('--issuer', 'https://id.example'),
          type('--audience', 'shop'),
          type('--jwks-url', 'https://id.example/jwks.json'),
        ],
        'oidc',
      ],
      ['app disable', [APP, yes('Disable [TEST] Reader')], /disabled +yes/],
    ])
  })

  it('by commands for plans, customers and subscriptions', async () => {
    const plan = await aPlan(ctx, app, { prices: [MONTHLY, YEARLY] })
    const off = await aPlan(ctx, app, { code: 'off', prices: [MONTHLY] })
    const customer = `cus_${(await aCustomer(ctx, app)).id}`
    await aSubscription(ctx, app, plan)
    const csv = join(scratchFolder('cli'), 'subscriptions.csv')
    writeFileSync(csv, `external_ref,price_id,current_period_end\nuser-9,${priceId(plan)},2099-01-01 00:00:00\n`)
    await aPromotion(ctx, app, { code: 'OFFER' })
    const offer = type('Promotion', 'OFFER')
    const user = type('<external_ref>', 'user-1')
    const planId = type('<plan_id>', `plan_${plan.id}`)
    const offId = type('<plan_id>', `plan_${off.id}`)
    await hold([
      ['plan list', [APP], 'Premium'],
      ['plan show', [APP, planId], '₫99,000'],
      [
        'plan create',
        [APP, type('--code', 'pro'), type('--name', 'Pro'), type('Price', '5000:VND:week')],
        /pro: Pro \(active\)/,
      ],
      ['plan update', [APP, planId], 'All of it', ['--name', 'All of it']],
      ['plan archive', [APP, offId], '(archived)'],
      ['promotion create', [APP, type('--code', 'tet'), type('Amount', '30000:VND')], /TET[^]*₫30,000/],
      ['promotion list', [APP], 'OFFER'],
      ['promotion show', [APP, offer], '20 %'],
      ['promotion archive', [APP, offer], 'archived'],
      ['price add', [APP, planId, type('Price', '1000:VND:day')], '1 day'],
      ['price archive', [APP, planId, type('<price_id>', priceId(plan, 1))], 'archived'],
      ['customer list', [APP], 'an@example.com'],
      ['customer show', [APP, type('<customer_id>', customer)], 'an@example.com'],
      ['subscription list', [APP], 'user-1'],
      ['subscription show', [APP, user], /status +active/],
      ['subscription attach-customer', [APP, user, type('<customer_id>', customer)], customer],
      ['subscription reminders', [APP, user, type('<on_or_off>', 'off')], 'reminders of user-1 are off'],
      ['subscription import', [APP, type('<file>', csv)], 'would_import', ['--dry-run']],
    ])
    await hold([
      ['plan restore', [APP, offId], '(active)'],
      ['promotion restore', [APP, offer], 'active'],
      ['price restore', [APP, planId, type('<price_id>', priceId(plan, 1))], /year +- +active/],
    ])
    await hold([['subscription switch-plan', [APP, user, type('<price_id>', priceId(plan, 1))], priceId(plan, 1)]])
    const end = yes('End the subscription of user-1 in [TEST] Reader')
    await hold([['subscription end', [APP, user, type('Why?', 'refunded'), end], 'expired']])
  })

  it('by commands for money, webhooks, mails and realtime nodes', async () => {
    const receiver = await Receiver.start()
    stops.push(() => receiver.stop())
    const peer = await startRealtimePeer()
    stops.push(() => peer.stop())
    const shop = await anApp(ctx, { name: 'Shop', webhookUrl: receiver.url })
    const phone = await anApp(ctx, { name: 'Phone', auth: 'identity' })
    const plan = await aPlan(ctx, phone)
    await aSubscription(ctx, phone, plan)
    const database = { databaseUrl: 'https://demo-proj.firebaseio.com', serviceAccount: aServiceAccountFile() }
    await perform(ctx, operator('tester'), setRealtime, database, { app: await getApp(ctx.db, phone.app.id) })
    const reminder = await anUnconfirmedReminder(ctx, shop)
    const receipt = await anUnconfirmedReceipt(ctx, shop)
    const event = (await ctx.db.one(events, 'WHERE app_id = ?', [shop.app.id]))!
    await partlyPaid(ctx, app, { external_ref: 'user-7', price_id: priceId(await aPlan(ctx, app)) })
    const money = await unmatchedMoney(ctx, app, 99_000)
    await addBankAccount(ctx, 'tester', { bank: 'VCB', number: '123', holder: 'AN' })
    const second = pick('Which app?', 1)
    await hold(
      [
        [
          'bank-account add',
          [type('Bank (short code', 'acb'), type('Account number', '99'), type('Account holder', 'BINH')],
          'ACB',
        ],
        ['bank-account assign', [APP, pick('Which account?')], 'Vietcombank'],
        [
          'bank-account update',
          [pick('Which account?'), type('Address that the bank writes to', 'me@example.com')],
          'me@example.com',
        ],
        [
          'bank-mail match',
          [
            pick('Which mail?'),
            pick('Whose money is it?'),
            type('Why?', 'the payer called'),
            yes(`Book the money of bank mail ${money.mail} for transaction ${money.transaction}?`),
          ],
          /- the transaction completes[\s\S]+- valid until: no subscription → 20[\s\S]+user-1 has Premium until 20/,
        ],
        ['transaction show', [pick('Which flagged transaction?')], 'flagged underpaid'],
        ['webhook list', [second], 'subscription.updated'],
        ['webhook show', [type('<event_id>', `evt_${event.id}`)], 'no attempt yet'],
        ['trigger', [second, pick('Which event?', 3)], 'transaction.completed'],
        [
          'trigger',
          [second, pick('Which event?', 2), type('Where is the reminder sent?', 'me@example.com')],
          'subscription.renewal_reminder_sent',
        ],
        ['request', [second, type('<method>', 'GET'), type('<path>', '/plans')], 'X-Signature', ['--dry-run']],
        ['listen', [second], 'evt_', ['--since', '1h', '--count', '1']],
        ['webhook retry', [type('<event_id>', `evt_${event.id}`)], `evt_${event.id} is due again`],
        ['webhook test', [second], /delivered +yes/],
        ['reminders settle', [pick('Which mail?')], `reminder ${reminder}: not_sent`, ['--not-sent']],
        ['receipts settle', [pick('Which mail?')], `receipt ${receipt}: sent`, ['--sent']],
        ['mail test', [type('Your address', 'me@example.com')], 'the mail to me@example.com was written to a folder'],
        ['realtime resync', [pick('Which app?', 2), type('<external_ref>', 'user-1')], '1 written, 0 failed'],
      ],
      { FIREBASE_DATABASE_EMULATOR_HOST: peer.host },
    )
    const odd = await aBankMail(ctx, { bank: 'ACB', review: 'not_understood' })
    await hold([
      [
        'bank-mail close',
        [pick('Which mail?'), type('Why?', 'news'), yes(`Close bank mail ${odd}?`)],
        /- bank mail \d+ leaves the list; its money, if any,[\s\S]+is closed/,
      ],
      ['bank-account disable', [pick('Which account?'), yes('for good?')], /disabled +yes/],
      [
        'transaction resolve',
        [
          pick('Which flagged transaction?'),
          pick('Choose an action', 2),
          type('Why?', 'a gift'),
          yes('Resolve transaction'),
        ],
        'is pending, not flagged',
      ],
    ])
    const PAYMENT = pick('Which payment?')
    const why = type('Why?', 'the payer called')
    await aBankMail(ctx, { bank: 'ACB', bankReference: 'late', amount: 100, review: 'credit' })
    await hold([['payment show', [PAYMENT], 'booked for no transaction']])
    await hold([
      ['payment refund', [PAYMENT, why, yes('back?')], 'succeeded', ['--amount', '40', '--reference', 'FT-BACK']],
    ])
    const target = type('<transaction_id>', String(money.transaction))
    const part = ['--amount', '30'] as const
    await hold([
      ['payment move', [PAYMENT, target, why, yes('Book money of payment')], 'flagged duplicate_payment', part],
    ])
    await hold([['payment close', [PAYMENT, why, yes('Close payment')], 'is closed']])
    expect(await openCli().table(['bank-mail', 'list', '--unmatched'])).to.include('No money waits')
    expect(receiver.received).to.have.length(1)
    const APPROVAL = pick('Which approval?')
    await anOpenApproval(ctx)
    await anOpenApproval(ctx)
    await hold([
      ['approval show', [APPROVAL], 'FT-APPROVED'],
      ['approval grant', [APPROVAL, type('Why?', 'checked'), yes('Grant approval')], 'granted'],
      ['approval deny', [APPROVAL, type('Why?', 'in cash'), yes('Deny approval')], 'denied'],
    ])
  })

  it('by commands for backups and keys', async () => {
    const identity = await generateX25519Identity()
    const folder = scratchFolder('backups')
    writeFileSync(join(folder, 'identity'), identity)
    const settings = {
      BILLING_BACKUP_DIR: folder,
      BILLING_BACKUP_RECIPIENT: await identityToRecipient(identity),
      BILLING_BACKUP_IDENTITY: join(folder, 'identity'),
    }
    await openCli(settings).json(['backup', 'create'])
    const empty = await openEmptyDatabase('asked')
    const into = type('Into which empty database?', empty.url)
    const keeper = await identityToRecipient(await generateX25519Identity())
    try {
      await hold(
        [
          ['backup restore', [pick('Which backup?'), into], 'billing-cli reconcile'],
          ['key export', [type('public key of age', keeper)], 'keys', ['--to', join(folder, 'keys.age')]],
        ],
        settings,
      )
    } finally {
      await empty.drop()
    }
  })

  it('and elsewhere refused, as a surplus one is, before the database is used', async () => {
    const cli = openCli({ BILLING_DATABASE_URL: 'mysql://paygate@127.0.0.1:1/paygate' })
    const lines = leavesOf(await createProgram()).map(({ path, command }) => {
      const [first] = command.registeredArguments
      return first && neededArguments(command) > 0
        ? ([2, path, `missing required argument <${first.name()}>`] as const)
        : ([2, [...path, 'one', 'word', 'too', 'many'], 'too many arguments'] as const)
    })
    await cli.expectErrors(...lines)
  })

  it('by every command that needs one', async function () {
    if (!othersPassed(this)) this.skip()
    const asking = leavesOf(await createProgram())
      .filter(({ path, command }) => neededArguments(command) > 0 || ASK_FOR_OPTIONS.includes(path.join(' ')))
      .map(({ path }) => path.join(' '))
    expect(asking.length).to.be.above(30)
    // as is refused without its argument on a terminal, too.
    expect(asking.filter((command) => command !== 'as' && !tested.has(command))).to.deep.equal([])
  })
})
