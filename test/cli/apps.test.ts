import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createServer } from 'node:http'
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { cardAccounts } from '#providers/card/accounts.ts'
import { METHODS } from '#providers/providers.ts'
import { expireDue } from '#renewals/expire-due.ts'
import { addMs } from '#shared/time.ts'
import { subscriptions } from '#subscriptions/store.ts'
import { events } from '#webhooks/store.ts'
import { testContext } from '../support/context.ts'
import { anApp, aPlan, aSubscription } from '../support/factories.ts'
import { listen, stopServer } from '../support/http-server.ts'
import { aServiceAccountFile } from '../support/service-account.ts'
import { itRunsEveryForm } from './forms.ts'
import { openCli, PROGRAM, type Cli } from './run-cli.ts'
import type { ShownApp } from './shown.ts'
import { scratchFolder } from '../support/scratch.ts'

const AS_NOBODY = join(import.meta.dirname, '..', 'support', 'as-nobody')
const EXPORTED = [
  'plans',
  'promotions',
  'customers',
  'subscriptions',
  'transactions',
  'payments',
  'allocations',
  'refunds',
  'ledger',
  'events',
  'reminders',
  'receipts',
]

describe('the command line: apps, payment methods and bank accounts', () => {
  let cli: Cli

  beforeEach(() => {
    cli = openCli()
  })

  it('creates apps of both kinds and shows the secret once', async () => {
    const [hmac, identity] = await Promise.all([
      cli.json(['app', 'create', '--name', 'Reader', '--auth', 'hmac', '--sandbox']),
      cli.json(['app', 'create', '--name', 'Phone', '--auth', 'identity', '--webhook-url', 'https://shop.example/h']),
    ])
    expect(hmac).to.have.all.keys('app_id', 'api_key', 'api_secret')
    expect(hmac.api_secret).to.match(/^sk_/)
    expect(identity.api_secret).to.equal(null)
    const shop = ['app', 'create', '--name', 'Shop', '--auth', 'hmac', '--webhook-url', 'https://shop.example/h']
    const shown = await cli.run(shop)
    expect(shown.stdout).to.include('api_secret').and.include('not shown again')
    expect(shown.stderr).to.include('billing-cli app rotate-webhook-secret')

    const { value: apps, text } = await cli.both(['app', 'list'])
    expect(apps.map(({ name }: { name: string }) => name)).to.have.members(['Reader', 'Phone', 'Shop'])
    expect(JSON.stringify(apps)).not.to.include(hmac.api_secret)
    expect(text).to.include('[TEST]').and.include('[LIVE]').and.include(hmac.api_key)
    const { value: app, text: one } = await cli.both(['app', 'show', hmac.api_key])
    expect(app).to.include({ app_id: hmac.app_id, name: 'Reader', sandbox: true, disabled: false })
    expect(one).to.include('[TEST] Reader')
    expect(one).not.to.include(hmac.api_secret)
  })

  it('changes, disables and enables an app, and rotates its secrets', async () => {
    const { app, secret } = await anApp(testContext(), { name: 'Reader' })
    const id = String(app.id)
    const changed = await cli.json([
      'app',
      'update',
      ...[id, '--name', 'Reader 2', '--webhook-url', 'https://shop.example/hooks'],
      ...['--mail-from', 'billing@shop.example'],
    ])
    expect(changed).to.include({
      name: 'Reader 2',
      webhook_url: 'https://shop.example/hooks',
      mail_from: 'billing@shop.example',
    })
    expect(await cli.table(['app', 'update', id, '--webhook-url', ''])).to.match(/webhook_url +-/)
    const off = await cli.both(['app', 'disable', id])
    expect(off.value).to.include({ disabled: true })
    expect(off.text).to.match(/disabled +yes/)
    const on = await cli.both(['app', 'enable', id])
    expect(on.value).to.include({ disabled: false })
    expect(on.text).to.match(/disabled +no/)

    const { value: webhook, text: webhookShown } = await cli.both(['app', 'rotate-webhook-secret', id, '--yes'])
    expect(webhookShown).to.include('whsec_').and.include('not shown again')
    const rotated = await cli.json(['app', 'rotate-secret', id])
    expect(Object.keys(rotated)).to.deep.equal(['api_secret'])
    expect(rotated.api_secret).not.to.equal(secret)
    expect(Object.keys(webhook)).to.deep.equal(['webhook_secret'])
    expect(webhook.webhook_secret).to.match(/^whsec_/)
    expect(await cli.table(['app', 'rotate-secret', id])).to.include('not shown again')
    const overlapping = await cli.json(['app', 'rotate-secret', id, '--overlap', '24h'])
    expect(Object.keys(overlapping)).to.deep.equal(['api_secret'])
    const next = await cli.json(['app', 'rotate-webhook-secret', id, '--prepare'])
    expect(Object.keys(next)).to.deep.equal(['webhook_secret'])
    const activate = ['app', 'rotate-webhook-secret', id, '--activate', '--yes']
    expect(await cli.json(activate)).to.deep.equal({ webhook_secret: null })
    await cli.json(['app', 'rotate-webhook-secret', id, '--prepare'])
    expect(await cli.table(activate)).to.equal('The prepared secret signs from now on.\n')
    for (const wrong of ['8d', '0h', 'soon', '24'])
      expect(await cli.run(['app', 'rotate-secret', id, '--overlap', wrong])).to.include({ code: 2 })
    expect(await cli.run(['app', 'rotate-webhook-secret', id, '--activate', '--yes'])).to.include({ code: 1 })

    const { value: log, text } = await cli.both(['audit', 'list', '--app', id])
    expect(log.map(({ action }: { action: string }) => action)).to.include.members(['app.update', 'app.disable'])
    expect(log[0]!.actor).to.equal(userInfo().username)
    expect(JSON.stringify(log)).not.to.include(rotated.api_secret).and.not.include(webhook.webhook_secret)
    expect(text).to.include('app.update')
  })

  it("sets what clients of an identity-token app may choose, shows it, and refuses it for a server's app", async () => {
    const ctx = testContext()
    const id = String((await anApp(ctx, { auth: 'identity' })).app.id)
    const server = String((await anApp(ctx)).app.id)
    const origins = 'https://a.example, https://b.example:8443'
    const words = ['app', 'update', id, '--client-amounts', 'on', '--return-origins', origins]
    const changed = await cli.json(words)
    const shown = { client_amounts: true, return_origins: ['https://a.example', 'https://b.example:8443'] }
    expect(changed).to.deep.include(shown)
    const { value, text } = await cli.both(['app', 'show', id])
    expect(value).to.deep.include(shown)
    expect(text)
      .to.match(/client_amounts +yes/)
      .and.include('https://b.example:8443')
    const cleared = await cli.table(['app', 'update', id, '--client-amounts', 'off', '--return-origins', ''])
    expect(cleared)
      .to.match(/client_amounts +no/)
      .and.match(/return_origins +-/)
    const log = await cli.json(['audit', 'list', '--app', id])
    expect(log[1]!.after).to.deep.include(shown)
    await cli.expectErrors(
      [2, ['app', 'update', id, '--client-amounts', 'yes'], 'on or off'],
      [2, ['app', 'update', id], 'nothing to change: give a setting'],
      [1, ['app', 'update', id, '--return-origins', 'https://a.example/ok'], 'error: --return-origins: "https://a.'],
      [1, ['app', 'update', server, '--client-amounts', 'on'], 'error: --client-amounts: only identity-token apps'],
    )
  })

  it('sets how pages and mails look, and restores each default when the value is empty', async () => {
    const id = String((await anApp(testContext())).app.id)
    const settings: [option: string, value: string, field: keyof ShownApp, shown: unknown, fallback: unknown][] = [
      ['--time-zone', 'Asia/Tokyo', 'time_zone', 'Asia/Tokyo', null],
      ['--accent', '#0B6B3A', 'accent', '#0b6b3a', null],
      ['--support', 'help@shop.example', 'support', 'help@shop.example', null],
      ['--terms-url', 'https://shop.example/terms', 'terms_url', 'https://shop.example/terms', null],
      ['--privacy-url', 'https://shop.example/privacy', 'privacy_url', 'https://shop.example/privacy', null],
      ['--statement-name', 'SHOP', 'statement_name', 'SHOP', null],
    ]
    const changed = await cli.json(['app', 'update', id, ...settings.flatMap(([option, value]) => [option, value])])
    for (const [, , field, shown] of settings) expect(changed[field], field).to.deep.equal(shown)
    expect(await cli.json(['app', 'update', id, '--name', 'Other'])).to.deep.include({
      name: 'Other',
      time_zone: 'Asia/Tokyo',
    })
    expect(await cli.json(['app', 'update', id, '--bank-app-links', 'off'])).to.include({ bank_app_links: false })
    expect(await cli.json(['app', 'update', id, '--bank-app-links', 'on'])).to.include({ bank_app_links: true })
    expect(await cli.json(['app', 'update', id, '--receipts', 'on'])).to.include({ receipts: true })
    expect(await cli.json(['app', 'update', id, '--receipts', 'off'])).to.include({ receipts: false })
    const restored = await cli.json(['app', 'update', id, ...settings.flatMap(([option]) => [option, ''])])
    for (const [, , field, , fallback] of settings) expect(restored[field], field).to.deep.equal(fallback)
    await cli.expectErrors(
      [1, ['app', 'update', id, '--time-zone', 'Hanoi'], 'error: --time-zone: must be a time zone such as'],
      [1, ['app', 'update', id, '--accent', '#ffd54a'], 'the nearest such colour is #'],
      [1, ['app', 'update', id, '--accent', 'red'], 'error: --accent: must be a colour such as'],
      [1, ['app', 'update', id, '--support', 'javascript:alert(1)'], 'error: --support: must be an e-mail address or'],
      [
        1,
        ['app', 'update', id, '--logo', 'package.json'],
        'error: --logo: is neither a PNG picture nor an SVG drawing',
      ],
      [2, ['app', 'update', id, '--logo', 'nowhere.png'], 'nowhere.png cannot be read'],
      [1, ['app', 'update', id, '--time-zone', '+07:00'], 'error: --time-zone: must be a time zone such as'],
    )
  })

  it('records who ran sudo in the audit log, and ignores SUDO_USER unless it runs as root', async () => {
    const create = ['app', 'create', '--name', 'Shop', '--auth', 'hmac', '--sandbox'] as const
    const asSudo = openCli({ SUDO_USER: 'linh', SUDO_UID: '1000' })
    const { app_id: id } = await asSudo.json(create)
    const isRoot = process.getuid?.() === 0
    const actors = async () =>
      (await cli.json(['audit', 'list', '--app', String(id)])).map(({ actor }: { actor: string }) => actor)
    expect(await actors()).to.deep.equal([isRoot ? 'linh (sudo)' : userInfo().username])

    await promisify(execFile)(AS_NOBODY, [PROGRAM, 'app', 'disable', String(id)], { env: asSudo.env })
    const [last] = await actors()
    expect(last).to.equal(isRoot ? 'nobody' : userInfo().username)
  })

  it("exports an app's data, without its secrets", async () => {
    const { app, secret } = await anApp(testContext())
    const folder = join(scratchFolder('cli'), 'export')
    const words = ['app', 'export', String(app.id), '--out', folder]
    const value = await cli.json(words)
    expect(value).to.have.all.keys(...EXPORTED)
    expect(await cli.table(words))
      .to.include('[TEST] Reader')
      .and.match(/plans +0/)
    const files = readdirSync(folder)
    for (const table of EXPORTED) expect(files).to.include.members([`${table}.csv`, `${table}.jsonl`])
    for (const file of files) expect(readFileSync(join(folder, file), 'utf8')).not.to.include(secret)
    await cli.expectErrors(
      [2, ['app', 'export', String(app.id)], '--out'],
      [2, ['app', 'export', String(app.id), '--dir', folder, '--out', folder], '--dir'],
      [1, ['app', 'export', String(app.id), '--dir', join(folder, 'plans.csv')], 'cannot be written'],
      [1, ['app', 'export', '999', '--dir', folder], 'billing-cli app list'],
    )
  })

  it('exports the sales alone, for bookkeeping', async () => {
    const { app } = await anApp(testContext())
    const folder = join(scratchFolder('cli'), 'sales')
    const { value, text } = await cli.both(['app', 'export', String(app.id), '--sales', '--out', folder])
    expect(value).to.deep.equal({ sales: 0 })
    expect(text).to.match(/sales +0/)
    expect(readdirSync(folder)).to.deep.equal(['sales.csv'])
  })

  it('sets the issuer of identity tokens and the realtime database', async () => {
    const { app } = await anApp(testContext(), { auth: 'identity' })
    const id = String(app.id)
    const firebase = await cli.json(['app', 'set-identity', id, '--firebase-project', 'my-project'])
    expect(firebase.identity).to.deep.equal({ provider: 'firebase', project_id: 'my-project' })
    expect((await cli.json(['app', 'update', id, '--name', 'Reader'])).identity).to.deep.equal(firebase.identity)
    const oidc = ['app', 'set-identity', id, '--issuer', 'https://id.example', '--audience', 'shop'] as const
    const { value: named, text: shown } = await cli.both([...oidc, '--jwks-url', 'https://id.example/jwks.json'])
    expect(named.identity).to.deep.equal({
      ...{ provider: 'oidc', issuer: 'https://id.example', audience: 'shop' },
      jwks_url: 'https://id.example/jwks.json',
    })
    expect(shown).to.include('oidc').and.include('jwks_url')

    const file = join(scratchFolder('cli'), 'account.json')
    writeFileSync(file, aServiceAccountFile())
    const words = ['app', 'set-realtime', id, '--database-url', 'https://my-project.firebaseio.com'] as const
    const { value, text } = await cli.both([...words, '--service-account', file])
    expect(value.realtime).to.deep.equal({
      database_url: 'https://my-project.firebaseio.com',
      path: 'users/{uid}/subscription',
    })
    expect(JSON.stringify(value) + text).not.to.include('PRIVATE KEY')
    expect((await cli.json(['app', 'update', id, '--path', 'people/{uid}'])).realtime!.path).to.equal('people/{uid}')
    await cli.expectErrors(
      [2, ['app', 'set-realtime', id, '--service-account', file], '--database-url'],
      [2, [...words, '--service-account', `${file}.gone`], 'cannot be read'],
      [
        1,
        ['app', 'set-realtime', id, '--database-url', 'nope', '--service-account', file],
        'error: --database-url: must',
      ],
      [
        2,
        ['app', 'set-identity', id, '--firebase-project', 'a', '--issuer', 'https://id.example'],
        'exclude each other',
      ],
      [2, ['app', 'set-identity', id], '--firebase-project or --issuer'],
    )
  })

  it('shows and moves the clock of a sandbox app', async () => {
    const ctx = testContext()
    const id = String((await anApp(ctx)).app.id)
    const { now } = await cli.json(['app', 'clock', id, '--advance', '30d'])
    expect(now).to.match(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/)
    expect(await cli.table(['app', 'clock', id])).to.include(`it is ${now.slice(0, 10)}`)
    expect((await cli.json(['app', 'clock', id, '--now', '2099-01-01 00:00:00'])).now).to.include('2099-01-01')
    await cli.expectErrors(
      [2, ['app', 'clock', id, '--advance', 'soon'], '--advance'],
      [2, ['app', 'clock', id, '--advance', '40000d'], 'to 36500d'],
      [1, ['app', 'clock', id, '--now', 'tomorrow'], 'error: --now: must be a time written'],
      [1, ['app', 'clock', id, '--now', '2000-01-01 00:00:00'], 'error: --now: must not be before'],
    )
    const live = String((await anApp(ctx, { sandbox: false })).app.id)
    await cli.refused(['app', 'clock', live, '--advance', '1d'])
  })

  it('says of a method that is enabled and cannot be offered that something is missing', async () => {
    const { app } = await anApp(testContext(), { methods: [] })
    const id = String(app.id)
    const missing = 'bank_transfer is not offered yet: billing-cli doctor says what it needs'
    expect(await cli.table(['method', 'enable', id, 'bank_transfer'])).to.include(missing)
    expect(await cli.table(['method', 'enable', id, 'test'])).to.include(missing)
    expect(await cli.table(['method', 'disable', id, 'bank_transfer'])).not.to.include(missing)
  })

  it('refuses credentials that the provider does not know, as invalid input, and changes nothing', async () => {
    const stripe = createServer((_request, response) => {
      response.writeHead(401, { 'Content-Type': 'application/json' })
      response.end(JSON.stringify({ error: { type: 'invalid_request_error', message: 'Invalid API Key provided' } }))
    })
    const id = String((await anApp(testContext(), { methods: [] })).app.id)
    const wrong = openCli({
      BILLING_STRIPE_API_BASE: `http://127.0.0.1:${await listen(stripe)}`,
      BILLING_CLI_STRIPE_SECRET_KEY: 'sk_test_wrong',
      BILLING_CLI_STRIPE_WEBHOOK_SECRET: 'whsec_x',
    })
    const refused = await wrong.run(['method', 'enable', id, 'card', '--json'])
    await stopServer(stripe)
    expect(refused.code).to.equal(1)
    expect(JSON.parse(refused.stderr)).to.deep.equal({
      error: { code: 'invalid_request', message: 'Stripe does not know this secret key; nothing was changed' },
    })
    const [card] = (await cli.json(['method', 'list', id])).filter(({ method }) => method === 'card')
    expect(card).to.include({ enabled: false })
  })

  it('enables methods with credentials from the environment, and shows only whether they are set', async () => {
    const ctx = testContext()
    const { app } = await anApp(ctx, { methods: [] })
    const id = String(app.id)
    const secrets = {
      BILLING_CLI_STRIPE_SECRET_KEY: 'sk_test_canary1',
      BILLING_CLI_STRIPE_WEBHOOK_SECRET: 'whsec_canary2',
      BILLING_CLI_PAYOS_CLIENT_ID: 'canary3',
      BILLING_CLI_PAYOS_API_KEY: 'canary4',
      BILLING_CLI_PAYOS_CHECKSUM_KEY: 'canary5',
    }
    const given = openCli(secrets)
    const texts = [
      await given.table(['method', 'enable', id, 'card', '--skip-check']),
      JSON.stringify(await given.json(['method', 'enable', id, 'payos', '--skip-check'])),
    ]
    expect(texts.join('')).not.to.include('canary')
    expect((await cardAccounts.current(ctx, app.id))?.credentials).to.deep.equal({
      secretKey: 'sk_test_canary1',
      webhookSecret: 'whsec_canary2',
    })
    await cli.table(['method', 'enable', id, 'test'])
    const { value: methods, text: left } = await cli.both(['method', 'disable', id, 'card'])
    expect(methods[0]).to.include({ method: 'card', enabled: false, has_credentials: true })
    expect(left).to.match(/card +no +yes/)
    const { value, text } = await cli.both(['method', 'list', id])
    expect(value.map(({ method, enabled }: { method: string; enabled: boolean }) => [method, enabled])).to.deep.equal(
      METHODS.map((method) => [method, method === 'payos' || method === 'test']),
    )
    expect(text).to.include('bank_transfer')
    await cli.expectErrors(
      [2, ['method', 'enable', id, 'card'], 'BILLING_CLI_STRIPE_SECRET_KEY'],
      [2, ['method', 'enable', id, 'cash'], 'card, payos'],
      [2, ['method', 'disable', id, 'cash'], 'card, payos'],
    )
    const live = String((await anApp(ctx, { sandbox: false })).app.id)
    expect(await cli.refused(['method', 'enable', live, 'test'])).to.include('sandbox')
    expect(JSON.stringify(await cli.json(['audit', 'list']))).not.to.include('canary')
  })

  it('keeps versions of credentials, lists what depends on each, and forgets an earlier one', async () => {
    const ctx = testContext()
    const id = String((await anApp(ctx, { methods: [] })).app.id)
    const enable = (key: string) =>
      openCli({ BILLING_CLI_STRIPE_SECRET_KEY: key, BILLING_CLI_STRIPE_WEBHOOK_SECRET: 'whsec_x' }).json([
        'method',
        'enable',
        ...[id, 'card', '--skip-check'],
      ])
    await enable('sk_test_1')
    const [same] = await enable('sk_test_1')
    expect(same!.versions).to.have.length(1)
    const [card] = await enable('sk_test_2')
    const [current, earlier] = card!.versions
    expect(current).to.include({ version: 2, retired_at: null, forgotten: false, open_sessions: 0 })
    expect(earlier).to.include({ version: 1, forgotten: false, refundable_payments: 0 })
    expect(earlier!.retired_at).to.be.a('string')
    expect(await cli.table(['method', 'list', id])).to.match(/card +1 +.*replaced/)
    await cli.expectErrors(
      [2, ['method', 'forget', id, 'card'], '--version'],
      [2, ['method', 'forget', id, 'card', '--version', 'x', '--yes'], 'number'],
      [1, ['method', 'forget', id, 'card', '--version', '2', '--yes'], 'in use'],
      [1, ['method', 'forget', id, 'card', '--version', '3', '--yes'], 'not found'],
    )
    const forgotten = await cli.json(['method', 'forget', id, 'card', '--version', '1', '--yes'])
    expect(forgotten).to.deep.equal({ method: 'card', version: 1, closed_sessions: 0 })
    await cli.expectErrors([1, ['method', 'forget', id, 'card', '--version', '1', '--yes'], 'not found'])
    await cli.json(['method', 'disable', id, 'card'])
    expect(await cli.table(['method', 'forget', id, 'card', '--version', '2', '--yes'])).to.include('is forgotten')
    const [none] = await cli.json(['method', 'list', id])
    expect(none).to.include({ has_credentials: false })
    await cli.expectErrors([2, ['method', 'enable', id, 'card', '--skip-check'], 'BILLING_CLI_STRIPE'])
    const [third] = await enable('sk_test_2')
    expect(third!.versions[0]).to.include({ version: 3, forgotten: false })
  })

  it("adds a bank account under any of its bank's names, assigns and disables it", async () => {
    const { app } = await anApp(testContext())
    const added = await cli.json(['bank-account', 'add', '--bank', 'vcb', '--number', '0123 456', '--holder', 'AN'])
    expect(added).to.include({ bank: 'VCB', account_number: '0123456', account_holder: 'AN' })
    expect(added.forward_code).to.match(/^\d{10}$/)
    expect(added.forward_address).to.equal(`bank+${added.forward_code}@pay.example.com`)
    const shown = await cli.table(['bank-account', 'add', '--bank', '970416', '--number', '99', '--holder', 'BINH'])
    expect(shown).to.include('ACB')

    const id = String(added.bank_account_id)
    const assigned = await cli.json(['bank-account', 'assign', String(app.id), id])
    expect(assigned).to.deep.equal(added)
    expect((await cli.json(['app', 'show', String(app.id)])).bank_account_id).to.equal(added.bank_account_id)
    expect(await cli.table(['bank-account', 'assign', app.apiKey, id])).to.include('[TEST] Reader')
    expect(await cli.json(['bank-account', 'disable', id])).to.deep.equal({ ...added, disabled: true })
    expect(await cli.table(['bank-account', 'disable', id, '--yes'])).to.match(/disabled +yes/)
    expect(await cli.refused(['bank-account', 'assign', String(app.id), id])).to.include('disabled')

    const { value, text } = await cli.both(['bank-account', 'list'])
    expect(value.map(({ bank, disabled }: { bank: string; disabled: boolean }) => [bank, disabled])).to.deep.equal([
      ['VCB', true],
      ['ACB', false],
    ])
    expect(text).to.include('forward to').and.include('mailbox')
    await cli.expectErrors(
      [2, ['bank-account', 'add', '--bank', 'VCB', '--number', '1'], '--holder'],
      [1, ['bank-account', 'add', '--bank', 'nobank', '--number', '1', '--holder', 'A'], 'error: --bank: must be'],
      [2, ['bank-account', 'disable', 'x'], '<id>'],
      [1, ['bank-account', 'disable', '999'], 'billing-cli bank-account list'],
    )
  })

  it('sets, changes and clears the mailbox that a bank writes to', async () => {
    const add = ['bank-account', 'add', '--bank', 'TIMO', '--number', '0123456', '--holder', 'AN'] as const
    const without = await cli.run(add)
    expect(without.stderr).to.match(/billing-cli bank-account update \d+ --mailbox/)
    const added = await cli.json([...add, '--mailbox', 'seller@gmail.example'])
    expect(added).to.include({ bank: 'TIMO', mailbox: 'seller@gmail.example' })
    const id = String(added.bank_account_id)
    const update = ['bank-account', 'update', id, '--mailbox', 'shop@gmail.example'] as const
    const planned = await cli.preview(update)
    const plan = await cli.table([...update, '--dry-run'])
    expect([planned.dry_run, planned.changes[0]!.after]).to.deep.equal([true, { mailbox: 'shop@gmail.example' }])
    expect(plan).to.include('mailbox: seller@gmail.example → shop@gmail.example')
    expect((await cli.json(['bank-account', 'list'])).at(-1)).to.deep.equal(added)
    expect(await cli.json(update)).to.deep.equal({ ...added, mailbox: 'shop@gmail.example' })
    const clear = ['bank-account', 'update', id, '--mailbox', '']
    expect(await cli.table([...clear, '--dry-run'])).to.include('mailbox: shop@gmail.example → -')
    expect(await cli.table(clear)).to.match(/mailbox +-/)
    expect((await cli.json(['bank-account', 'list'])).at(-1)!.mailbox).to.equal(null)
    const audit = JSON.stringify(await cli.json(['audit', 'list']))
    expect(audit).to.include('bank-account.update').and.include('shop@gmail.example')
    await cli.expectErrors(
      [2, ['bank-account', 'update', id], '--mailbox'],
      [2, ['bank-account', 'update', 'x', '--mailbox', 'a@b.example'], '<id>'],
      [1, ['bank-account', 'update', '999', '--mailbox', 'a@b.example'], 'billing-cli bank-account list'],
      [1, ['bank-account', 'update', id, '--mailbox', 'nobody'], 'error: --mailbox: must be'],
      [1, [...add, '--mailbox', 'a@b.example, c@d.example'], '--mailbox'],
    )
  })

  it('asks for subscription.expired from now on: of a period that ended before, the old setting decides', async () => {
    const ctx = testContext()
    const app = await anApp(ctx)
    const plan = await aPlan(ctx, app)
    const ended = async (externalRef: string) => {
      await aSubscription(ctx, app, plan, { external_ref: externalRef })
      const { id, periodStart } = (await ctx.db.one(subscriptions, 'WHERE external_ref = ?', [externalRef]))!
      await ctx.db.update(subscriptions, { id }, { currentPeriodEnd: addMs(periodStart, -1000) })
    }
    const ask = (types: string) => cli.json(['app', 'update', String(app.app.id), '--more-events', types])
    const reported = async () => {
      await expireDue(ctx)
      const rows = await ctx.db.all(events, "WHERE event_type = 'subscription.expired' ORDER BY id")
      return rows.map(({ externalRef }) => externalRef)
    }
    await ended('before')
    await ask('subscription.expired')
    expect(await reported()).to.deep.equal([])
    await ended('after')
    await ask('none')
    expect(await reported()).to.deep.equal(['after'])
    await ended('later')
    expect(await reported()).to.deep.equal(['after'])
  })

  itRunsEveryForm('apps.test.ts')
})
