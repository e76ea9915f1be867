import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { request } from 'undici'
import { signRequest } from '#apps/call-signature.ts'
import { getApp } from '#apps/store.ts'
import { parseKeyring } from '#shared/crypto.ts'
import { messageOf } from '#shared/errors.ts'
import { systemClock, unixSeconds } from '#shared/time.ts'
import { events } from '#webhooks/store.ts'
import { openCli, type Cli } from '../cli/run-cli.ts'
import { testContext } from '../support/context.ts'
import { testDatabase } from '../support/database.ts'
import { startDaemonProcess } from '../support/daemon-process.ts'
import { aPlan, aSubscription } from '../support/factories.ts'
import { listen, stopServer } from '../support/http-server.ts'
import { scratchFolder } from '../support/scratch.ts'
import { aServiceAccountFile } from '../support/service-account.ts'
import { until } from '../support/until.ts'

const canary = (name: string) => `canary-${name}-${randomBytes(8).toString('hex')}`

/** A secret and the encodings in which it might leak. */
function encodingsOf(secret: string): string[] {
  const bytes = Buffer.from(secret)
  const escaped = JSON.stringify(secret).slice(1, -1)
  const encodings = [secret, escaped, encodeURIComponent(secret), bytes.toString('hex'), bytes.toString('base64')]
  return [...new Set(encodings)]
}

/** Everything that the service has put out, by where it was seen. */
class Seen {
  readonly #texts: (readonly [where: string, text: string])[] = []

  add(where: string, content: string): void {
    this.#texts.push([where, content])
  }

  get size(): number {
    return this.#texts.length
  }

  /** `API secret in transaction show`: each canary that was seen, and where. */
  leaks(secrets: Readonly<Record<string, string>>): string[] {
    return Object.entries(secrets).flatMap(([name, secret]) =>
      this.#texts
        .filter(([, content]) => encodingsOf(secret).some((encoding) => content.includes(encoding)))
        .map(([where]) => `${name} in ${where}`),
    )
  }
}

/** A provider and a webhook receiver that answer with what they received: the worst that a peer can do. */
async function startEcho(): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer((incoming: IncomingMessage, response) => {
    void text(incoming).then((body) => {
      const received = `${JSON.stringify(incoming.headers)} ${body}`
      response.writeHead(incoming.url === '/hooks' ? 500 : 400, { 'Content-Type': 'application/json' })
      response.end(
        JSON.stringify({ error: { type: 'invalid_request_error', message: received }, code: '99', desc: received }),
      )
    })
  })
  const url = `http://127.0.0.1:${await listen(server)}`
  // The process can end also where a test fails before it stops this.
  server.unref()
  return { url, stop: () => stopServer(server) }
}

/** A database user with a password of its own; the test database is open to root alone. */
async function aDatabaseUser(password: string): Promise<{ url: string; drop(): Promise<void> }> {
  const { db, name, socketPath } = testDatabase()
  const user = `canary${process.pid}`
  await db.query(`CREATE USER '${user}'@'localhost' IDENTIFIED BY '${password}'`)
  await db.query(`GRANT ALL ON ${name}.* TO '${user}'@'localhost'`)
  const url = `mysql://${user}:${password}@localhost/${name}?socketPath=${encodeURIComponent(socketPath)}`
  return { url, drop: () => db.query(`DROP USER '${user}'@'localhost'`) }
}

/** Every row of every table, as text. */
async function addTables(seen: Seen): Promise<void> {
  const { db } = testDatabase()
  const tables: { name: string }[] = await db.query(
    'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()',
  )
  for (const { name } of tables) {
    const rows: Record<string, unknown>[] = await db.query(`SELECT * FROM ${name}`)
    const readable = rows.map((row) =>
      Object.values(row).map((value) => (Buffer.isBuffer(value) ? value.toString('utf8') : String(value))),
    )
    seen.add(`table ${name}`, JSON.stringify(readable))
    seen.add(`table ${name}, unescaped`, readable.flat().join('\n'))
  }
}

describe('secrets (trial T30)', () => {
  it('appear in no output, log, metric, error, export, audit row or table, whatever setting holds them', async () => {
    const keyBytes = Buffer.from(`canary-key-${randomBytes(16).toString('hex')}`.slice(0, 32))
    const secrets: Record<string, string> = {
      'database password': canary('database'),
      'encryption key': keyBytes.toString('base64'),
      'encryption key, raw': keyBytes.toString('latin1'),
      'SMTP password': canary('smtp'),
      'relay secret': canary('relay'),
      'metrics token': canary('metrics'),
      'Stripe key': `sk_test_${canary('stripe')}`,
      'Stripe webhook secret': `whsec_${canary('stripehook')}`,
      'PayOS client id': canary('payosclient'),
      'PayOS API key': canary('payoskey'),
      'PayOS checksum key': canary('payoschecksum'),
      'service account key': canary('accountkey'),
    }
    const of = (name: string) => secrets[name] ?? expect.fail(name)
    const seen = new Seen()
    const echo = await startEcho()
    const user = await aDatabaseUser(of('database password'))
    const settings = {
      BILLING_DATABASE_URL: user.url,
      BILLING_ENCRYPTION_KEYS: `k1:${of('encryption key')}`,
      BILLING_SMTP_URL: `smtp://billing:${of('SMTP password')}@127.0.0.1:9`,
      BILLING_MAIL_FROM: 'billing@example.com',
      BILLING_RELAY_SECRET: of('relay secret'),
      BILLING_RELAY_AUTHSERV_IDS: 'mx.example.com',
      BILLING_METRICS_TOKEN: of('metrics token'),
      BILLING_STRIPE_API_BASE: echo.url,
      BILLING_PAYOS_API_BASE: echo.url,
      BILLING_LOG_LEVEL: 'trace',
      BILLING_SWEEP_SECONDS: '1',
      BILLING_WEBHOOK_RETRY_MINUTES: '0.01,0.01,0.01,0.01,0.01',
      FIREBASE_DATABASE_EMULATOR_HOST: '127.0.0.1:9',
    }
    const cli = openCli({
      ...settings,
      BILLING_CLI_STRIPE_SECRET_KEY: of('Stripe key'),
      BILLING_CLI_STRIPE_WEBHOOK_SECRET: of('Stripe webhook secret'),
      BILLING_CLI_PAYOS_CLIENT_ID: of('PayOS client id'),
      BILLING_CLI_PAYOS_API_KEY: of('PayOS API key'),
      BILLING_CLI_PAYOS_CHECKSUM_KEY: of('PayOS checksum key'),
    })
    const daemon = await startDaemonProcess(settings)
    try {
      const { hmac, identity } = await setUp(cli, seen, secrets, echo.url)
      await callApi(daemon.url, seen, hmac, of('metrics token'))
      const ctx = testContext(settings, {})
      const withKeys = { ...ctx, keyring: parseKeyring(settings.BILLING_ENCRYPTION_KEYS) }
      const client = { app: await getApp(ctx.db, identity), apiKey: '', secret: '', webhookSecret: null }
      await aSubscription(withKeys, client, await aPlan(withKeys, client))
      const shop = { ...client, app: await getApp(ctx.db, hmac.appId) }
      await aSubscription(withKeys, shop, await aPlan(withKeys, shop))
      await until(async () => (await ctx.db.count(events, 'WHERE last_error IS NOT NULL')) > 0)
      seen.add('log of a command', ctx.logged.join('\n'))
      await runEveryCommand(cli, seen, hmac.appId, identity)
      await runRefusedStarts(seen, settings, secrets)
      await addTables(seen)
    } finally {
      expect(await daemon.stop()).to.equal(0)
      await user.drop()
      await echo.stop()
    }
    seen.add('log of the daemon', daemon.logged.join('\n'))
    expect(daemon.logged.length).to.be.greaterThan(10)
    expect(seen.size).to.be.greaterThan(60)
    expect(seen.leaks(secrets)).to.deep.equal([])
  })
})

interface Hmac {
  readonly appId: number
  readonly apiKey: string
  readonly apiSecret: string
  readonly price: string
}

/** An HMAC app with every method and a webhook, and an identity-token app with a realtime database. Adds the secrets that are shown once to `secrets`. */
async function setUp(
  cli: Cli,
  seen: Seen,
  secrets: Record<string, string>,
  receiver: string,
): Promise<{ hmac: Hmac; identity: number }> {
  const run = async <First extends string, Second extends string>(...words: readonly [First, Second, ...string[]]) => {
    const value = await cli.json(words)
    seen.add(words.join(' '), JSON.stringify(value))
    return value
  }
  const app = await cli.json([
    'app',
    'create',
    '--name',
    'Reader',
    '--auth',
    'hmac',
    '--sandbox',
    '--webhook-url',
    `${receiver}/hooks`,
  ])
  secrets['API secret'] = app.api_secret
  const id = String(app.app_id)
  secrets['webhook secret'] = (await cli.json(['app', 'rotate-webhook-secret', id])).webhook_secret!
  await run('method', 'enable', id, 'test')
  await run('method', 'enable', id, 'card', '--skip-check')
  await run('method', 'enable', id, 'payos', '--skip-check')
  const plan = await run('plan', 'create', id, '--code', 'premium', '--name', 'Premium', '--price', '99000:VND:month')
  const identity = await run('app', 'create', '--name', 'Client', '--auth', 'identity', '--sandbox')
  const clientId = String(identity.app_id)
  const account = aServiceAccountFile({ private_key_id: secrets['service account key'] })
  secrets['service account private key'] =
    (JSON.parse(account) as { private_key: string }).private_key.split('\n')[3] ?? ''
  const file = join(scratchFolder('canary'), 'account.json')
  writeFileSync(file, account)
  await run(
    'app',
    'set-realtime',
    clientId,
    '--database-url',
    'https://demo-proj.firebaseio.com',
    '--service-account',
    file,
  )
  await run('method', 'enable', clientId, 'test')
  const hmac = { appId: app.app_id, apiKey: app.api_key, apiSecret: app.api_secret, price: plan.prices[0]!.id }
  return { hmac, identity: identity.app_id }
}

/** Calls that succeed, calls that are refused, and calls that reach the echoing provider. */
async function callApi(url: string, seen: Seen, { apiKey, apiSecret, price }: Hmac, token: string): Promise<void> {
  const call = async (method: 'GET' | 'POST', target: string, body: string, headers: Record<string, string>) => {
    const type = body === '' ? {} : { 'Content-Type': 'application/json' }
    const answer = await request(new URL(target, url), {
      method,
      headers: { ...type, ...headers },
      ...(body === '' ? {} : { body }),
    })
    seen.add(`${method} ${target}`, `${JSON.stringify(answer.headers)} ${await answer.body.text()}`)
    return answer.statusCode
  }
  const signed = (method: 'GET' | 'POST', target: string, body = '', secret = apiSecret) => {
    const timestamp = String(unixSeconds(systemClock.now()))
    const signature = signRequest(secret, timestamp, { method, target, body: Buffer.from(body) })
    return call(method, target, body, { 'X-App-Key': apiKey, 'X-Timestamp': timestamp, 'X-Signature': signature })
  }
  const checkout = (method: string) =>
    JSON.stringify({
      external_ref: `user-${method}`,
      mode: 'subscription',
      price_id: price,
      payment_method: method,
      success_url: 'https://shop.example/ok',
      cancel_url: 'https://shop.example/no',
    })
  expect(await signed('GET', '/api/v1/plans')).to.equal(200)
  expect(await signed('GET', '/api/v1/plans', '', 'sk_wrong')).to.equal(401)
  expect(await signed('POST', '/api/v1/customers', '{"name":""}')).to.equal(400)
  for (const method of ['card', 'payos'])
    expect(await signed('POST', '/api/v1/checkout-sessions', checkout(method))).to.be.oneOf([201, 400, 502])
  expect(await signed('POST', '/api/v1/checkout-sessions', checkout('test'))).to.equal(201)
  for (const path of ['card-provider', 'bank-transfer-provider', 'bank-transfer']) {
    const forged = { 'X-Timestamp': '1', 'X-Signature': 'ab', 'Stripe-Signature': 't=1,v1=ab' }
    expect(await call('POST', `/api/v1/webhooks/${path}`, '{"data":{}}', forged)).to.equal(400)
  }
  expect(await call('GET', '/metrics', '', { Authorization: 'Bearer wrong' })).to.equal(403)
  expect(await call('GET', '/metrics', '', { Authorization: `Bearer ${token}` })).to.equal(200)
  await call('GET', '/readyz', '', {})
}

async function runEveryCommand(cli: Cli, seen: Seen, appId: number, identity: number): Promise<void> {
  const id = String(appId)
  const subscription = (await cli.json(['subscription', 'list', String(identity)])) as unknown[]
  expect(subscription).to.have.length(1)
  const exported = scratchFolder('canary-export')
  const commands = [
    ['app', 'list'],
    ['app', 'show', id],
    ['app', 'show', String(identity)],
    ['app', 'update', id, '--name', 'Reader 2'],
    ['method', 'list', id],
    ['plan', 'list', id],
    ['transaction', 'list'],
    ['transaction', 'show', '1'],
    ['webhook', 'list', id],
    ['webhook', 'test', id],
    ['webhook', 'retry', '--failed', id],
    ['subscription', 'show', String(identity), 'user-1'],
    ['realtime', 'resync', String(identity), '--all'],
    ['reconcile'],
    ['reminders', 'plan'],
    ['mail', 'test', 'somebody@example.com'],
    ['ledger', 'verify'],
    ['stats', '--test'],
    ['doctor'],
    ['key', 'rotate'],
    ['method', 'enable', id, 'card'],
    ['method', 'enable', id, 'payos'],
    ['audit', 'list'],
    ['notification', 'list'],
    ['app', 'export', id, '--dir', exported],
  ]
  const forms = commands.flatMap((words) =>
    ['doctor', 'audit'].includes(words[0]!) ? [words, [...words, '--json']] : [[...words, '--json']],
  )
  for (const form of forms) {
    const { stdout, stderr } = await cli.run(form)
    const name = form.join(' ')
    seen.add(name, stdout + stderr)
    expect(stdout + stderr, name).to.not.equal('')
  }
  const files = readdirSync(exported)
  expect(files).to.include('transactions.csv')
  for (const file of files) seen.add(`export ${file}`, readFileSync(join(exported, file), 'utf8'))
}

/** Invalid settings, and a database that refuses access. */
async function runRefusedStarts(
  seen: Seen,
  settings: Readonly<Record<string, string>>,
  secrets: Readonly<Record<string, string>>,
): Promise<void> {
  const { url } = testDatabase()
  const wrong: Record<string, string>[] = [
    { BILLING_ENCRYPTION_KEYS: secrets['encryption key'] ?? '' },
    { BILLING_ENCRYPTION_KEYS: `k1:${secrets['encryption key'] ?? ''},k1:${secrets['encryption key'] ?? ''}` },
    { BILLING_DATABASE_URL: `postgres://u:${secrets['database password'] ?? ''}@localhost/x` },
    { BILLING_DATABASE_URL: url.replace('root@', `nobody:${secrets['database password'] ?? ''}@`) },
    { BILLING_DATABASE_URL: `mysql://u:${secrets['database password'] ?? ''}@127.0.0.1:9/x` },
    { BILLING_SMTP_URL: `http://u:${secrets['SMTP password'] ?? ''}@127.0.0.1` },
  ]
  const lines = [
    ['app', 'list'],
    ['doctor', '--json'],
  ]
  for (const [change, words] of wrong.flatMap((change) => lines.map((words) => [change, words] as const))) {
    const { code, stdout, stderr } = await openCli({ ...settings, ...change }).run(words)
    const name = `${words.join(' ')} with a wrong ${Object.keys(change).join()}`
    expect(code, name).to.equal(1)
    seen.add(name, stdout + stderr)
  }
  const refused: unknown = await startDaemonProcess({ ...settings, ...wrong[4] }).catch((error: unknown) =>
    messageOf(error),
  )
  expect(refused).to.be.a('string')
  seen.add('a daemon that cannot start', refused as string)
}
