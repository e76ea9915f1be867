import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { Paygate } from '../../client/src/index.ts'
import { getApp } from '#apps/store.ts'
import { inTransaction } from '#commands/transaction.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import { openDocPage } from '../support/doc-page.ts'
import { realTimeContext, testEnvironment } from '../support/context.ts'
import { startDaemonProcess, type DaemonProcess } from '../support/daemon-process.ts'
import { scratchFolder } from '../support/scratch.ts'
import { freePort } from '../support/free-ports.ts'
import { Shell, withoutChance } from '../support/shell.ts'
import { until } from '../support/until.ts'
import { aCompletion } from '../support/factories.ts'

const ROOT = join(import.meta.dirname, '../..')
const SHOP = join(import.meta.dirname, 'shop')
const PORT = '4242'
const guide = openDocPage('docs/guide.md')

/** What is done with a block of the guide: `ts` is a file to save, `bash` is pasted. */
interface Step {
  readonly language: 'ts' | 'bash'
  readonly code: string
  /** What the guide says that the commands print; null if it says nothing. */
  readonly prints: string | null
}

const stepsOf = (text: string): Step[] =>
  [...text.matchAll(/^```(ts|bash)\n(.*?)^```(?:\n\n```text\n(.*?)^```)?/gms)].map(
    ([, language, code = '', prints]) => ({ language: language as Step['language'], code, prints: prints ?? null }),
  )

const nameOf = (code: string): string => /^\/\/ ([\w-]+\.ts)/.exec(code)?.[1] ?? ''

/** Two subscriptions as Stripe lists them, by an API version of before and one of after the period moved into the items. */
const STRIPE = {
  object: 'list',
  data: [
    {
      status: 'active',
      billing_cycle_anchor: Date.UTC(2025, 0, 31, 8) / 1000,
      current_period_end: Date.UTC(2041, 1, 28, 8) / 1000,
      items: { data: [{}] },
      customer: { email: 'binh@example.com', name: 'Bình "Bi", Trần' },
      metadata: { user_id: 'binh' },
    },
    {
      status: 'active',
      billing_cycle_anchor: Date.UTC(2025, 4, 5) / 1000,
      items: { data: [{ current_period_end: Date.UTC(2041, 2, 5) / 1000 }] },
      customer: { email: 'chi@example.com', name: null },
      metadata: { user_id: 'chi' },
    },
    // By the week, so that the day of its anchor says nothing, and without an address.
    {
      status: 'active',
      billing_cycle_anchor: Date.UTC(2025, 4, 5) / 1000,
      items: { data: [{ current_period_end: Date.UTC(2041, 2, 18) / 1000 }] },
      customer: { email: null, name: null },
      metadata: { user_id: 'giao' },
    },
    {
      status: 'past_due',
      billing_cycle_anchor: Date.UTC(2025, 4, 5) / 1000,
      items: { data: [{ current_period_end: Date.UTC(2041, 2, 5) / 1000 }] },
      customer: { email: 'dung@example.com', name: null },
      metadata: { user_id: 'dung' },
    },
  ],
}

describe('the sample shop, by the guide for sellers alone', () => {
  const home = scratchFolder('guide-home')
  const folder = scratchFolder('guide-shop')
  let daemon: DaemonProcess
  let shell: Shell
  let port: string
  let paygate: Paygate
  /** The sandbox's time at the first checkout. */
  let subscribed: string
  let starts = 0
  const read = (file: string): string => readFileSync(join(folder, file), 'utf8')
  const log = (): string => (existsSync(join(folder, 'shop.log')) ? read('shop.log') : '')
  const typesOf = async (user: string): Promise<string[]> => {
    const types: string[] = []
    for await (const { event_type, data } of paygate.events.list({ limit: 100 }))
      if (data['external_ref'] === user) types.unshift(event_type)
    return types
  }

  const handled = (): string[] => (JSON.parse(read('state.json')) as { handled: string[] }).handled
  const allHandled = async (): Promise<boolean> => {
    const { data } = await paygate.events.list({ limit: 100 })
    const known = new Set(handled())
    return data.every(({ id }) => known.has(id))
  }

  const statuses = async (): Promise<string[]> =>
    (await paygate.events.list({ limit: 100 })).data.map(({ delivery_status }) => delivery_status)

  before(async () => {
    // Only the backfill can bring what the first attempt did not.
    const environment = testEnvironment({ BILLING_HOME: home, BILLING_WEBHOOK_RETRY_MINUTES: '600' })
    daemon = await startDaemonProcess(environment)
    port = String(await freePort())
    shell = new Shell(folder, {
      ...environment,
      PATH: [dirname(process.execPath), join(ROOT, 'bin'), process.env['PATH'] ?? ''].join(':'),
      HOME: home,
      BILLING_BASE_URL: daemon.url,
      // What somebody who has followed the tour has pasted.
      PAYGATE_API_KEY: 'pk_test_of_the_tour',
      PAYGATE_API_SECRET: 'sk_of_the_tour',
      PAYGATE_WEBHOOK_SECRET: 'whsec_of_the_tour',
      npm_config_offline: 'true',
    })
  })

  after(async () => {
    await shell.close()
    await daemon.stop()
  })

  /** Follows a section: saves its files, pastes its commands, and compares what they print. */
  async function follow(section: string): Promise<void> {
    const steps = stepsOf(guide.section(section))
    expect(steps).not.to.deep.equal([])
    for (const { language, code, prints } of steps) {
      if (language === 'ts') writeFileSync(join(folder, nameOf(code)), code.replaceAll(PORT, port))
      else await paste(code, prints)
    }
  }

  async function paste(commands: string, prints: string | null): Promise<void> {
    // A webhook that is sent again finds its event handled.
    if (commands.includes('webhook retry')) await until(allHandled)
    if (commands.includes('grep -c')) {
      const id = await shell.paste('echo "$EVENT_ID"')
      await until(() => log().includes(`${id} again`))
    }
    const isClone = commands.startsWith('npm pack')
    const printed = await shell.paste(
      isClone ? `cd '${ROOT}'\n${commands}cd '${folder}'` : commands.replaceAll(PORT, port),
    )
    if (commands.includes('server.ts')) {
      starts += 1
      await until(() => log().split('the shop is open').length > starts)
    }
    if (commands.includes('/premium')) await premiumBecomes(commands, prints ?? '')
    else if (commands.includes('/order?')) await until(async () => (await again(commands)) === prints?.trim())
    else if (prints !== null) expect(chanceless(printed)).to.equal(chanceless(prints))
  }

  const again = (commands: string): Promise<string> => shell.paste(commands.replaceAll(PORT, port))

  /** A webhook comes a moment later. The guide's customer subscribes on 22 November; here it is as many months from today. */
  async function premiumBecomes(commands: string, prints: string): Promise<void> {
    const { current_period_end: end } = await paygate.subscriptions.get('an')
    const expected = `premium until ${end ?? 'ever'}`
    await until(async () => (await again(commands)) === expected)
    if (end === null) expect(prints.trim()).to.equal(expected)
    else expect(monthOf(end) - monthOf(subscribed)).to.equal(monthOf(prints) - monthOf('2026-11'))
  }

  /** Takes a subscription: keys, a plan, a checkout, and a webhook that opens access. */
  async function subscribe(): Promise<void> {
    await follow('Set up')
    const { api_key: apiKey, api_secret: apiSecret } = JSON.parse(read('app.json')) as Record<string, string>
    paygate = new Paygate({ baseUrl: daemon.url, apiKey: apiKey ?? '', apiSecret: apiSecret ?? '' })
    subscribed = (await paygate.testClock.get()).now
    // The shop goes on selling its plan beside a newer one, such as that of `billing-cli trigger`.
    const prices = [{ amount: 1, currency: 'VND', interval_unit: 'month' as const, interval_count: 1 }]
    await paygate.plans.create({ code: 'newer', name: 'Newer', prices })
    await follow('Checkout')
    await follow('Webhooks')
    expect(await typesOf('an')).to.deep.equal(['subscription.updated'])
    expect((await fetch(`http://127.0.0.1:${port}/premium?user=nobody`)).status).to.equal(402)
    const forged = await fetch(`http://127.0.0.1:${port}/hooks`, { method: 'POST', body: '{}' })
    expect(forged.status).to.equal(400)
  }

  /** Renews it over three months of clock time, each time by the link in a reminder. */
  async function renewThreeTimes(): Promise<void> {
    await follow('Testing with the clock')
    const month = ['subscription.renewal_reminder_sent', 'subscription.renewed', 'subscription.updated']
    expect((await typesOf('an')).sort()).to.deep.equal(['subscription.updated', ...month, ...month, ...month].sort())
    await until(async () => !(await statuses()).includes('pending'))
  }

  /** Survives a webhook outage by backfill, and handles a late attempt no second time. */
  async function surviveOutage(): Promise<void> {
    await until(allHandled)
    const before = new Set(handled())
    await follow('After an outage')
    const missed: string[] = []
    for await (const { id, event_type } of paygate.events.list()) if (!before.has(id)) missed.push(event_type)
    expect(missed).to.have.members([
      'subscription.renewal_reminder_sent',
      'subscription.renewed',
      'subscription.updated',
    ])
    // One was sent again; no attempt brought the other two.
    await until(async () => (await statuses()).filter((status) => status === 'pending').length === 2)
    expect(handled().length).to.equal(before.size + 3)
    expect(new Set(handled()).size).to.equal(handled().length)
  }

  /** Refunds a flagged payment, which leaves the subscription as it is. */
  async function refundFlagged(): Promise<void> {
    await follow('Refunds, and payments that need a decision')
    const { data } = await paygate.transactions.list({ external_ref: 'an', limit: 2 })
    expect(data.map(({ status, flagged }) => [status, flagged])).to.deep.equal([
      ['refunded', false],
      ['completed', false],
    ])
  }

  /** Opens a checkout at a discount, which has the last use of its promotion. */
  async function discount(): Promise<void> {
    await follow('Promotions')
    const { data } = await paygate.transactions.list({ external_ref: 'dung' })
    expect(data.map(({ amount, discount }) => [amount, discount])).to.deep.equal([
      [79_200, { code: 'WELCOME', amount: 19_800 }],
    ])
    await paygate.promotions.update((await paygate.promotions.list()).data[0]!.id, { status: 'archived' })
  }

  /** Takes over the active subscriptions of a list by Stripe, with their ends, days and customers, and gives them access. */
  async function moveFromStripe(): Promise<void> {
    writeFileSync(join(folder, 'stripe.json'), JSON.stringify(STRIPE))
    await follow('Moving from Stripe subscriptions')
    const ends = await Promise.all(['binh', 'chi', 'giao'].map((user) => paygate.subscriptions.get(user)))
    expect(ends.map(({ status, current_period_end }) => [status, current_period_end])).to.deep.equal([
      ['active', '2041-02-28 08:00:00'],
      ['active', '2041-03-05 00:00:00'],
      ['active', '2041-03-18 00:00:00'],
    ])
    expect(read('subscriptions.csv')).to.include('"2041-02-28 08:00:00","31","binh@example.com"')
    expect(read('subscriptions.csv').trim().split('\n').length).to.equal(4)
    const { data } = await paygate.customers.list({ email: 'binh@example.com' })
    expect(data.map(({ name }) => name)).to.deep.equal(['Bình "Bi", Trần'])
    expect(await typesOf('binh')).to.deep.equal(['subscription.updated'])
    const premium = async (): Promise<string> => (await fetch(`http://127.0.0.1:${port}/premium?user=binh`)).text()
    await until(async () => (await premium()) === 'premium until 2041-02-28 08:00:00\n')
    expect(await typesOf('dung')).to.deep.equal([])
  }

  /** Keeps an order whose checkout gets no answer, so that no other one gets its number. */
  async function keepUnanswered(): Promise<void> {
    const buy = "import('../checkout.ts').then(({ openPurchase }) => openPurchase('em')).catch(() => undefined)"
    await shell.paste(`mkdir alone && (cd alone && PAYGATE_URL=http://127.0.0.1:9 node --env-file=../.env -e "${buy}")`)
    const { orders } = JSON.parse(read('alone/state.json')) as { orders: object }
    expect(orders).to.deep.equal({ 'A-1001': { status: 'open', transaction: null } })
  }

  /** Sells something once, finds the order by metadata, and hears of its refund. */
  async function sellOnce(): Promise<void> {
    await follow('One-time purchases')
    const { data } = await paygate.transactions.list({ external_ref: 'em' })
    expect(data.map(({ mode, status, metadata }) => [mode, status, metadata['order']])).to.deep.equal([
      ['payment', 'completed', 'A-1001'],
    ])
  }

  /** Makes no two customers of a user who subscribes in two tabs at the same time. */
  async function subscribeTwiceAtOnce(): Promise<void> {
    const subscribed = await Promise.all(
      [1, 2, 3].map(async () => {
        const body = new URLSearchParams({ user: 'giang', email: 'giang@example.com', unit: 'month' })
        const request = { method: 'POST', body, redirect: 'manual' } as const
        return (await fetch(`http://127.0.0.1:${port}/subscribe`, request)).status
      }),
    )
    expect(subscribed).to.deep.equal([303, 303, 303])
    expect((await paygate.customers.list({ merchant_customer_id: 'giang' })).data).to.have.length(1)
  }

  /** Follows what is committed after a later event, and handles it once. */
  async function followLate(): Promise<void> {
    const ctx = realTimeContext()
    const { app_id: appId } = JSON.parse(read('app.json')) as { app_id: number }
    // Without an address nothing is delivered: only following brings these.
    const app = { ...(await getApp(ctx.db, appId)), webhookUrl: null }
    const emit = (externalRef: string, meanwhile: () => Promise<unknown>): Promise<unknown> =>
      inTransaction(ctx, async (tx) => {
        const data = aCompletion(externalRef)
        await emitEvent(tx, { app, type: 'transaction.completed', data })
        return meanwhile()
      })
    const isHandled = async (user: string): Promise<boolean> => {
      const { data } = await paygate.events.list({ external_ref: user })
      return handled().includes(data[0]?.id ?? '')
    }
    await emit('late', async () => {
      await emit('on-time', () => Promise.resolve())
      await until(() => isHandled('on-time'))
    })
    await until(() => isHandled('late'))
    expect(new Set(handled()).size).to.equal(handled().length)
  }

  it('is made of the files in the guide, and of nothing else', () => {
    const files = stepsOf(guide.text).filter(({ language }) => language === 'ts')
    const expected = globSync('*.ts', { cwd: SHOP }).map((name) => [
      basename(name),
      readFileSync(join(SHOP, name), 'utf8'),
    ])
    expect(files.map(({ code }) => [nameOf(code), code])).to.have.deep.members(expected)
  })

  it('covers a subscription, a one-time purchase and its refund, two tabs at once, three renewals, an outage without loss, a refund of a flagged payment, a promotion, users of Stripe, and an event that is committed late', async () => {
    await subscribe()
    await sellOnce()
    await keepUnanswered()
    await subscribeTwiceAtOnce()
    await renewThreeTimes()
    await follow('Which events you get, and when')
    await surviveOutage()
    await refundFlagged()
    await discount()
    await moveFromStripe()
    await followLate()
  })

  it('was followed to the last block, and the guide has no block of another kind', () => {
    const kinds = new Set([...guide.text.matchAll(/^ *```(\w+)/gm)].map(([, kind]) => kind))
    expect([...kinds].sort()).to.deep.equal(['bash', 'mermaid', 'text', 'ts'])
    expect(stepsOf(guide.text).length).to.equal(FOLLOWED.flatMap((section) => stepsOf(guide.section(section))).length)
  })
})

const FOLLOWED = [
  'Set up',
  'Checkout',
  'Webhooks',
  'One-time purchases',
  'Testing with the clock',
  'Which events you get, and when',
  'After an outage',
  'Refunds, and payments that need a decision',
  'Promotions',
  'Moving from Stripe subscriptions',
]

const chanceless = (text: string): string => withoutChance(text.replaceAll(/^\d+ an /gm, '<id> an '))

/** Months since the year 0 of the first date in a text. */
const monthOf = (text: string): number => {
  const [, year, month] = /(\d{4})-(\d\d)/.exec(text) ?? []
  return Number(year) * 12 + Number(month)
}
