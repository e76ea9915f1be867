import { loadConfig } from '#config/config.ts'
import { sandboxProvider } from '#providers/providers.ts'
import { messageOf } from '#shared/errors.ts'
import { openOutput, printError } from '#cli/output.ts'
import { runCli, startDaemon, stopDaemon, type Daemon } from './programs.ts'
import { Receiver } from '#demo/receiver.ts'
import { callApi, type Keys, payOnHostedPage } from '#demo/seller.ts'

const WEBHOOK_DEADLINE_MS = 15_000
const out = openOutput(false)

/** What the shell of whoever goes on needs. The address is that of the links that billing-cli makes, too. */
interface SandboxApp {
  readonly appId: string
  readonly keys: Keys
  readonly webhookSecret: string
}

function exportsOf(home: string, { appId, keys, webhookSecret }: SandboxApp): string {
  const settings = {
    BILLING_HOME: home,
    // Of the daemon, which `watch` asks.
    BILLING_PORT: new URL(keys.baseUrl).port,
    BILLING_BASE_URL: keys.baseUrl,
    APP_ID: appId,
    // As `npx paygate` and the samples read them.
    PAYGATE_URL: keys.baseUrl,
    PAYGATE_API_KEY: keys.apiKey,
    PAYGATE_API_SECRET: keys.apiSecret,
    PAYGATE_WEBHOOK_SECRET: webhookSecret,
  }
  return Object.entries(settings)
    .map(([name, value]) => `export ${name}='${value.replaceAll("'", String.raw`'\''`)}'`)
    .join('\n')
}

async function quickstart(isKept: boolean): Promise<void> {
  const startedMs = performance.now()
  const { databaseUrl, home } = loadConfig()
  const database =
    databaseUrl === null ? `with a private database under ${home}` : 'on the database of BILLING_DATABASE_URL'
  say('1', `the daemon starts, ${database}`)
  const daemon = await startDaemon()
  out.line(`     ${daemon.url}   (log: ${daemon.logPath})`)
  let made: SandboxApp
  try {
    made = await tour(daemon)
    out.lines(`\nDone in ${((performance.now() - startedMs) / 1000).toFixed(1)} s.`)
  } catch (error) {
    await stopDaemon(daemon)
    throw error
  }
  if (isKept) {
    daemon.process.unref()
    out.line(`The daemon keeps running at ${daemon.url}; stop it with: kill ${daemon.process.pid ?? ''}`)
    out.lines(`\nFor the tour of the README, paste this into your shell:\n\n${exportsOf(home, made)}`)
  } else {
    await stopDaemon(daemon)
  }
}

async function tour(daemon: Daemon): Promise<SandboxApp> {
  const { method } = sandboxProvider()
  const receiver = await Receiver.start()
  try {
    say('2', 'an operator registers a sandbox app and enables the test method')
    const create = 'app create --name Quickstart --auth hmac --sandbox --webhook-url'
    const app = await runCli(...create.split(' '), receiver.url)
    const appId = String(app['app_id'])
    const { webhook_secret } = await runCli('app', 'rotate-webhook-secret', appId)
    receiver.secret = String(webhook_secret)
    await runCli('method', 'enable', appId, method)
    out.line(`     app ${appId}, api_key ${String(app['api_key'])}`)

    say('3', 'the seller publishes a plan')
    const keys: Keys = { baseUrl: daemon.url, apiKey: String(app['api_key']), apiSecret: String(app['api_secret']) }
    const prices = [{ amount: 99_000, currency: 'VND', interval_unit: 'month', interval_count: 1 }]
    const plan = await callApi(keys, 'POST', '/api/v1/plans', { code: 'premium', name: 'Premium', prices })
    const [price] = plan['prices'] as { id: string }[]
    out.line(`     ${String(plan['id'])}: 99 000 VND a month, ${price?.id ?? ''}`)

    say('4', 'the seller opens a checkout, and the customer pays on the hosted page')
    const checkout = await callApi(keys, 'POST', '/api/v1/checkout-sessions', {
      external_ref: 'user-42',
      mode: 'subscription',
      price_id: price?.id,
      success_url: 'https://shop.example.com/thanks',
      cancel_url: 'https://shop.example.com/plans',
    })
    out.line(`     ${String(checkout['checkout_url'])}`)
    out.line(`     paid, and sent to ${await payOnHostedPage(String(checkout['checkout_url']), method)}`)

    say('5', 'the subscription')
    const subscription = await callApi(keys, 'GET', '/api/v1/subscriptions/user-42')
    out.line(`     ${String(subscription['status'])} until ${String(subscription['current_period_end'])}`)
    if (subscription['status'] !== 'active') throw new Error('the subscription is not active')

    say('6', 'the webhook')
    const webhook = await receiver.waitFor('subscription.updated', WEBHOOK_DEADLINE_MS)
    if (!webhook.isSigned) throw new Error('the webhook signature is wrong')
    out.line(`     ${webhook.eventId} ${webhook.eventType}: signature verified`)
    out.line(`     ${webhook.body}`)
    return { appId, keys, webhookSecret: String(webhook_secret) }
  } finally {
    receiver.stop()
  }
}

function say(step: string, text: string): void {
  out.lines(`\n[${step}/6] ${text}`)
}

try {
  await quickstart(process.argv.includes('--keep'))
} catch (error) {
  printError(messageOf(error))
  process.exitCode = 1
}
