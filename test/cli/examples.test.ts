import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { expect } from 'chai'
import type { Command } from 'commander'
import { after, before, describe, it } from 'mocha'
import { approvals } from '#approvals/store.ts'
import { apps } from '#apps/store.ts'
import { bankAccounts } from '#bank-accounts/store.ts'
import { bankMails } from '#bank-mail/store.ts'
import { checkoutSessions } from '#checkout/store.ts'
import { examplesOf } from '#cli/examples.ts'
import { createProgram } from '#cli/program.ts'
import { inTransaction } from '#commands/transaction.ts'
import { customers } from '#customers/store.ts'
import { reminders } from '#mails/reminders/store.ts'
import { payments } from '#payments/store.ts'
import { plans, prices } from '#plans/store.ts'
import { promotions } from '#promotions/store.ts'
import { assignTransferCode } from '#providers/bank-transfer/store.ts'
import { transactions } from '#transactions/store.ts'
import { receipts } from '#transactions/receipts/store.ts'
import { events } from '#webhooks/store.ts'
import { realTimeContext, type RealTimeContext } from '../support/context.ts'
import { clearTable, giveNextId } from '../support/database.ts'
import {
  aCheckout,
  aCustomer,
  anApp,
  aPlan,
  aSubscription,
  MONTHLY,
  priceId,
  reportPayment,
  YEARLY,
} from '../support/factories.ts'
import { failEvents } from '../support/failed-events.ts'
import { addBankAccount, enableMethod } from '../support/operators.ts'
import { startRealtimePeer, type RealtimePeer } from '../support/realtime-peer.ts'
import { Receiver } from '../support/receiver.ts'
import { scratchFolder } from '../support/scratch.ts'
import { aServiceAccountFile } from '../support/service-account.ts'
import { leavesOf, wordsOf } from './forms.ts'
import { openCli } from './run-cli.ts'
import { aBankMail, anOpenApproval, anUnconfirmedReceipt, anUnconfirmedReminder } from './states.ts'

/** These make what later examples need, and run first; none of them with `--dry-run`. */
const FIRST = [
  'operator add linh --role support --ssh-key linh.pub',
  'app set-realtime 2 --database-url https://my-project.firebaseio.com --service-account ./service-account.json',
  'app rotate-webhook-secret 1 --prepare',
  'plan create 1 --code pro --name Pro --price 99000:VND:month --price 990000:VND:year',
  'promotion create 1 --code TET2027 --percent 20 --plans pro --valid-until "2027-02-28 16:59:59" --max-uses 500',
]
/** These undo it, or change so much that they run last. */
const LAST = ['app rotate-webhook-secret 1 --activate', 'demo', 'demo --remove --dry-run', 'demo --remove --yes']
/** They go on until somebody ends them. */
const ENDED_BY: Readonly<Record<string, readonly string[]>> = {
  listen: ['--since=2h', '--count=1'],
  watch: ['--once'],
}
/** They need a backup with its key, and keys of age: `backups.test.ts` and the tests of upgrades run them. */
const ELSEWHERE = ['upgrade', 'backup verify', 'backup restore', 'key export', 'console', 'setup', 'service install']
/** They exit 1 where they find something. */
const MAY_FIND = ['doctor', 'ledger verify']

describe('the examples of --help', () => {
  const cwd = process.cwd()
  const folder = scratchFolder('examples')
  let receiver: Receiver
  let realtime: RealtimePeer

  before(async () => {
    receiver = await Receiver.start()
    realtime = await startRealtimePeer()
    process.chdir(folder)
  })
  after(async () => {
    process.chdir(cwd)
    await receiver.stop()
    await realtime.stop()
  })

  it('run, each of them, on a database that has what they name; what changes something with --dry-run', async () => {
    const ctx = realTimeContext()
    const apiKey = await aWorld(ctx, receiver.url)
    const peers = { FIREBASE_DATABASE_EMULATOR_HOST: realtime.host }
    const cli = openCli({ ...files(folder), ...(await backupSettings(folder)), ...peers })
    const given = new Map([
      ['pk_test_0123456789abcdef01234567', apiKey],
      ['http://127.0.0.1:3000/hooks', receiver.url],
      ['/mnt/backups', join(folder, 'mnt')],
    ])
    const failures: string[] = []
    const commands = leavesOf(await createProgram())
    const tried = commands.filter(({ path }) => !ELSEWHERE.includes(path.join(' ')))
    const examples = tried.flatMap(({ path, command }) =>
      examplesOf(command).map((example) => ({ example, name: path.join(' '), command })),
    )
    const order = [...FIRST, '', ...LAST]
    const rank = ({ example }: Example): number => order.indexOf(order.includes(example) ? example : '')
    for (const each of examples.sort((a, b) => rank(a) - rank(b))) {
      const words = wordsToRun(each).map((word) => given.get(word) ?? word)
      const { code, stderr } = await cli.run(words)
      if (code !== 0 && !(code === 1 && MAY_FIND.includes(each.name)))
        failures.push(`${each.example}: ${code} ${stderr}`)
    }
    expect(failures).to.deep.equal([])
  })
})

interface Example {
  readonly example: string
  readonly name: string
  readonly command: Command
}

function wordsToRun({ example, name, command }: Example): string[] {
  const words = wordsOf(example)
  if (words.includes('--once') || words.includes('--dry-run') || words.includes('--print')) return words
  const isTried = command.options.some(({ long }) => long === '--dry-run') && ![...FIRST, ...LAST].includes(example)
  return [...words, ...(ENDED_BY[name] ?? []), ...(isTried ? ['--dry-run'] : [])]
}

/** The tables whose rows the examples name. */
const NUMBERED = [
  apps,
  plans,
  prices,
  customers,
  events,
  transactions,
  checkoutSessions,
  payments,
  bankMails,
  approvals,
  reminders,
  receipts,
  bankAccounts,
  promotions,
]

/**
 * What the examples name, under the ids that they name: the apps 1 and 2, plan 3, customer 5, price 7, the payment 12 of the bank mail 3,
 * the transaction 17, which is underpaid, and the end user `user-42`. Returns the api_key of app 1.
 */
async function aWorld(ctx: RealTimeContext, webhookUrl: string): Promise<string> {
  // Deleted rows that the server has not purged would count among the highest ids.
  for (const table of NUMBERED) await clearTable(ctx.db, table)
  await giveNextId(ctx.db, apps, 1)
  const shop = await anApp(ctx, { name: 'Reader', webhookUrl })
  const clients = await anApp(ctx, { name: 'Phone', auth: 'identity' })
  await giveNextId(ctx.db, plans, 3)
  await giveNextId(ctx.db, prices, 6)
  const plan = await aPlan(ctx, shop, { code: 'premium', prices: [MONTHLY, YEARLY] })
  await giveNextId(ctx.db, customers, 5)
  await giveNextId(ctx.db, promotions, 3)
  await aCustomer(ctx, shop, { name: 'Nguyễn Thị An' })
  await giveNextId(ctx.db, events, 17)
  await aSubscription(ctx, shop, plan, { external_ref: 'user-42', customer_id: 'cus_5' })
  await aSubscription(ctx, clients, await aPlan(ctx, clients), { external_ref: 'user-42' })
  await failEvents(ctx.db)
  await addBankAccount(ctx, 'tester', { bank: 'VCB', number: '87654321', holder: 'NGUYEN VAN AN' })
  for (const secretKey of ['sk_test_1', 'sk_test_2'])
    await enableMethod(ctx, 'tester', shop.app, 'card', { secretKey, webhookSecret: 'whsec_1' })
  await giveNextId(ctx.db, transactions, 17)
  await giveNextId(ctx.db, checkoutSessions, 12)
  await aCheckout(ctx, shop, { price_id: priceId(plan), external_ref: 'user-42' })
  await inTransaction(ctx, (tx) => assignTransferCode(tx, 17, 'ABCDEFGH23'))
  const paid = { eventId: null, currency: 'VND', paidAt: ctx.clock.now() }
  await reportPayment(ctx, { ...paid, provider: 'bank_transfer', reference: 'FT1', transactionId: 17, amount: 90_000 })
  await giveNextId(ctx.db, payments, 12)
  await giveNextId(ctx.db, bankMails, 3)
  await aBankMail(ctx, { bank: 'ACB', bankReference: 'FT9', amount: 99_000, review: 'credit' })
  await giveNextId(ctx.db, approvals, 3)
  await anOpenApproval(ctx)
  const other = await anApp(ctx, { name: 'Other' })
  await giveNextId(ctx.db, reminders, 12)
  await anUnconfirmedReminder(ctx, other)
  await giveNextId(ctx.db, receipts, 12)
  await anUnconfirmedReceipt(ctx, other)
  expect((await ctx.db.one(bankMails, 'WHERE id = 3', []))?.paymentId).to.equal(12)
  return shop.apiKey
}

async function backupSettings(folder: string): Promise<Record<string, string>> {
  const recipient = await identityToRecipient(await generateX25519Identity())
  return { BILLING_BACKUP_DIR: join(folder, 'backups'), BILLING_BACKUP_RECIPIENT: recipient }
}

/** The files that examples read, and the program that one of them starts. */
function files(folder: string): Record<string, string> {
  const price = { amount: 129_000, currency: 'VND', interval_unit: 'month', interval_count: 1 }
  const texts = {
    'plan.json': JSON.stringify({ code: 'max', name: 'Max', prices: [price] }),
    'price.json': JSON.stringify(price),
    'logo.svg': '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M0 0h9v9z"/></svg>',
    'service-account.json': aServiceAccountFile(),
    'linh.pub': 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1X0oGqjQyZp5lqX5oQW6hZ8h9V0QmO2q0Yx3b8Qk1r linh',
    'subscriptions.csv': 'external_ref,price_id,current_period_end\nuser-77,price_6,2027-01-31 00:00:00\n',
    rclone: '#!/bin/sh\ncat > /dev/null\n',
  }
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, name), text)
  chmodSync(join(folder, 'rclone'), 0o700)
  return {
    PATH: `${folder}:${process.env['PATH'] ?? ''}`,
    SSH_ORIGINAL_COMMAND: 'stats',
    BILLING_ALERT_MAIL: 'ops@example.com',
    BILLING_CLI_STRIPE_SECRET_KEY: 'sk_test_3',
    BILLING_CLI_STRIPE_WEBHOOK_SECRET: 'whsec_3',
  }
}
