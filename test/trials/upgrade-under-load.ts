import { execFile, execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { request } from 'undici'
import { signRequest } from '#apps/call-signature.ts'
import { systemClock, unixSeconds } from '#shared/time.ts'
import { events } from '#webhooks/store.ts'
import type { Response, SellerKeys } from '../support/api.ts'
import { requireCleanLedger } from '../support/clean-ledger.ts'
import { realTimeContext, testEnvironment } from '../support/context.ts'
import { startDaemonProcess, type DaemonProcess } from '../support/daemon-process.ts'
import { openEmptyDatabase, type TestDb } from '../support/database.ts'
import { openDocPage } from '../support/doc-page.ts'
import { Receiver } from '../support/receiver.ts'
import { scratchFolder } from '../support/scratch.ts'
import { freePort } from '../support/free-ports.ts'
import { until } from '../support/until.ts'
import { jsonCli } from './json-cli.ts'
import { Payers, type CallOptions, type Till } from './operator-walk-internet.ts'

export interface UpgradeOptions {
  readonly payers: number
  /** Paid before and after each step. */
  readonly payments: number
}

interface Part {
  readonly part: string
  readonly payments: number
  readonly refused: number
  /** The longest time without a completed payment. */
  readonly longestGapMs: number
}

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../..')
/** The last version whose daemons do not record themselves, and whose migrations do not say whether they expand. */
const BEFORE = 'fbc355e289cc1151069859acb85c6486835157c7'
const PRICE = 99_000
const MOST_GAP_MS = 5000

/**
 * Upgrades from the version before migrations in two steps while payers pay through the proxy of docs/scaling.md: a version that does not
 * start, the expanding step below the older daemons, one daemon after the other forward and back, and a single one. Throws if a call is
 * refused where two daemons serve, if a single one is away for more than 5 s, or if a payment is lost.
 */
export async function upgradeUnderLoad(options: UpgradeOptions) {
  const folder = scratchFolder('upgrade')
  const { db, url, drop } = await openEmptyDatabase('upgrade')
  const receiver = await Receiver.start()
  const machines = await Machines.start(folder, url)
  try {
    return await walk({ machines, receiver, db, options })
  } finally {
    await machines.stop()
    await receiver.stop()
    await drop()
  }
}

interface Walk {
  readonly machines: Machines
  readonly receiver: Receiver
  readonly db: TestDb
  readonly options: UpgradeOptions
}

async function walk({ machines, receiver, db, options }: Walk) {
  const keys = await openShop(machines, receiver)
  const parts: Part[] = []
  const refs: string[] = []
  const during = async (part: string, step: () => Promise<unknown>): Promise<void> => {
    const payers = new Payers(machines.till, keys, part.replaceAll(' ', '-'), options.payers)
    await payers.waitFor(options.payments)
    await step()
    await payers.waitFor(options.payments)
    await payers.stop()
    const { done, refusals, longestGapMs } = payers
    refs.push(...done.map(({ externalRef }) => externalRef))
    parts.push({ part, payments: done.length, refused: refusals.length, longestGapMs: Math.round(longestGapMs) })
    if (refusals.length > 0 && part !== ALONE) throw new Error(`${part}: ${refusals.slice(0, 3).join('\n')}`)
  }
  await machines.serve([0, 1], 'before')
  await during('a version that does not start', () => machines.replaceInVain(0))
  await during('migrate', () => machines.cli('after', 'migrate'))
  await during('forward', () => machines.serve([0, 1], 'after'))
  await during('back', () => machines.serve([0, 1], 'before'))
  await machines.leave(1)
  await during(ALONE, () => machines.serve([0], 'after'))
  const away = parts.at(-1)?.longestGapMs ?? Infinity
  if (away > MOST_GAP_MS) throw new Error(`a single daemon was away for ${away} ms`)
  const webhooks = await check(db, receiver, refs)
  return { payments: refs.length, ...webhooks, parts }
}

const ALONE = 'one daemon'

async function openShop(machines: Machines, receiver: Receiver): Promise<SellerKeys> {
  await machines.cli('before', 'migrate')
  const cli = jsonCli((words) => machines.cli('before', words))
  const app = await cli(`app create --name Reader --auth hmac --sandbox --webhook-url ${receiver.url}`)
  receiver.secret = (await cli(`app rotate-webhook-secret ${app.app_id}`)).webhook_secret
  await cli(`method enable ${app.app_id} test`)
  await cli(`plan create ${app.app_id} --code premium --name Premium --price ${PRICE}:VND:month`)
  return { apiKey: app.api_key, secret: app.api_secret }
}

/** Every payment is there once, the ledger is clean, and each event arrived. */
async function check(db: TestDb, receiver: Receiver, refs: readonly string[]) {
  await requireCleanLedger({ ...realTimeContext(), db }, 'after the upgrade')
  const [{ paid, sum, refunded }]: [Record<'paid' | 'sum' | 'refunded', string>] = await db.query(
    `SELECT COUNT(*) AS paid, SUM(p.amount) AS sum, (SELECT COUNT(*) FROM refunds) AS refunded FROM payments p`,
  )
  const active: { ref: string }[] = await db.query(
    "SELECT external_ref AS ref FROM subscriptions WHERE status = 'active'",
  )
  const found = new Set(active.map(({ ref }) => ref))
  const lost = refs.filter((ref) => !found.has(ref))
  if (lost.length > 0) throw new Error(`lost: ${lost.join()}`)
  // A payer whose answer was lost pays again, so that the single daemon's part may have more.
  if (Number(sum) !== Number(paid) * PRICE || Number(paid) < refs.length || Number(refunded) !== 0)
    throw new Error(`${refs.length} payments were answered, and ${paid} of together ${sum} are there`)
  await until(async () => (await undelivered(db)) === 0)
  const ids = new Set(receiver.received.map(({ eventId }) => eventId))
  const emitted = await db.count(events, '')
  if (ids.size !== emitted) throw new Error(`${emitted} events, and ${ids.size} arrived`)
  if (receiver.received.some(({ verified }) => verified !== true)) throw new Error('a webhook had a wrong signature')
  return { webhooks: ids.size, repeatedWebhooks: receiver.received.length - ids.size }
}

async function undelivered(db: TestDb): Promise<number> {
  return db.count(events, "WHERE delivery_status <> 'delivered'")
}

type Version = 'before' | 'after'

interface Running {
  readonly daemon: DaemonProcess
  readonly version: Version
}

/** Two ports at which daemons of either version serve, and the proxy in front of them. */
class Machines {
  readonly databaseUrl: string
  readonly till: Till
  readonly #folders: Readonly<Record<Version, string>>
  readonly #ports: readonly number[]
  readonly #settings: Readonly<Record<string, string>>
  readonly #proxy: Proxy
  readonly #running = new Map<number, Running>()

  private constructor(folder: string, databaseUrl: string, ports: readonly number[], proxy: Proxy) {
    this.databaseUrl = databaseUrl
    this.#ports = ports
    this.#folders = { before: checkOut(join(folder, 'before')), after: ROOT }
    this.#proxy = proxy
    this.till = tillAt(proxy.url)
    this.#settings = {
      BILLING_DATABASE_URL: databaseUrl,
      BILLING_BASE_URL: proxy.url,
      BILLING_TRUST_PROXY: '1',
      BILLING_DRAIN_SECONDS: '3',
      BILLING_HOME: join(folder, 'home'),
    }
  }

  static async start(folder: string, databaseUrl: string): Promise<Machines> {
    const ports = [await freePort(), await freePort()]
    return new Machines(folder, databaseUrl, ports, await Proxy.start(folder, ports))
  }

  /** Replaces the daemons of these numbers, one after the other. */
  async serve(numbers: readonly number[], version: Version): Promise<void> {
    for (const number of numbers) {
      await this.leave(number)
      this.#running.set(number, { daemon: await this.#start(number, version), version })
      await until(async () => (await this.#statusOf(number)) === 200)
      await this.#sendToRunning()
    }
    await until(async () => (await this.till.call('GET', '/readyz')).status === 200)
  }

  /** The newer version ends by itself on a schema that is behind; the older one takes its place again. */
  async replaceInVain(number: number): Promise<void> {
    await this.leave(number)
    const started = await this.#start(number, 'after').then(
      () => true,
      () => false,
    )
    if (started) throw new Error('the newer version starts on the older schema')
    await this.serve([number], 'before')
  }

  /** Stops a daemon. The older version does not drain: where another one serves, the proxy first sends it nothing more. */
  async leave(number: number): Promise<void> {
    const running = this.#running.get(number)
    if (!running) return
    this.#running.delete(number)
    if (running.version === 'before') await this.#sendToRunning()
    const code = await running.daemon.stop()
    if (code !== 0) throw new Error(`a daemon ended with ${code}`)
  }

  async cli(version: Version, words: string): Promise<string> {
    const environment = { PATH: process.env['PATH'] ?? '', ...testEnvironment(this.#settings) }
    const program = join(this.#folders[version], 'bin/billing-cli')
    return (await run(program, words.split(' '), { env: environment })).stdout
  }

  async stop(): Promise<void> {
    for (const { daemon } of this.#running.values()) await daemon.kill()
    await this.#proxy.stop()
  }

  #start(number: number, version: Version): Promise<DaemonProcess> {
    const settings = { ...this.#settings, BILLING_PORT: String(this.#ports[number]) }
    return startDaemonProcess(settings, this.#folders[version])
  }

  async #sendToRunning(): Promise<void> {
    const ports = [...this.#running.keys()].map((number) => this.#ports[number] ?? 0)
    if (ports.length > 0) await this.#proxy.sendTo(ports)
  }

  async #statusOf(number: number): Promise<number> {
    return (await callAt(`http://127.0.0.1:${this.#ports[number]}`, 'GET', '/readyz')).status
  }
}

/** Caddy with the block of docs/scaling.md. */
class Proxy {
  readonly url: string
  readonly #folder: string
  readonly #adminPort: number
  readonly #child: ChildProcess
  #ports: readonly number[] = []

  private constructor(folder: string, port: number, adminPort: number, ports: readonly number[]) {
    this.#folder = folder
    this.#adminPort = adminPort
    this.url = `http://127.0.0.1:${port}`
    this.#write(ports)
    this.#child = spawn('caddy', ['run', ...this.#config], { stdio: 'ignore', env: this.#environment })
  }

  static async start(folder: string, ports: readonly number[]): Promise<Proxy> {
    return new Proxy(folder, await freePort(), await freePort(), ports)
  }

  async sendTo(ports: readonly number[]): Promise<void> {
    if (String(ports.toSorted()) === String(this.#ports)) return
    this.#write(ports)
    await run('caddy', ['reload', ...this.#config], { env: this.#environment })
  }

  async stop(): Promise<void> {
    const gone = once(this.#child, 'exit')
    if (this.#child.kill()) await gone
  }

  #write(ports: readonly number[]): void {
    this.#ports = ports.toSorted()
    const block = openDocPage('docs/scaling.md').block('Several daemons', 'caddy')
    const addresses = ports.map((port) => `127.0.0.1:${port}`).join(' ')
    const site = block.replace('10.0.0.11:8080 10.0.0.12:8080', addresses)
    const text = `{\n  admin 127.0.0.1:${this.#adminPort}\n}\n${this.url} {\n${site}}\n`
    writeFileSync(this.#file, text)
  }

  get #file(): string {
    return join(this.#folder, 'Caddyfile')
  }

  get #config(): string[] {
    return ['--config', this.#file, '--adapter', 'caddyfile']
  }

  get #environment(): NodeJS.ProcessEnv {
    return { PATH: process.env['PATH'], HOME: this.#folder, XDG_DATA_HOME: this.#folder, XDG_CONFIG_HOME: this.#folder }
  }
}

/** The files of the version before, with the packages of this one. */
function checkOut(folder: string): string {
  mkdirSync(folder)
  const archive = execFileSync('git', ['-C', ROOT, 'archive', BEFORE], { maxBuffer: 1e9 })
  execFileSync('tar', ['--extract', '--directory', folder], { input: archive })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

function tillAt(url: string): Till {
  return {
    thanksUrl: 'https://shop.example.com/thanks',
    call: (method, path, options) => callAt(url, method, path, options),
    signed({ apiKey, secret }, method, path, value) {
      const body = Buffer.from(value === undefined ? '' : JSON.stringify(value))
      const timestamp = String(unixSeconds(systemClock.now()))
      const headers = {
        'Content-Type': 'application/json',
        'X-App-Key': apiKey,
        'X-Timestamp': timestamp,
        'X-Signature': signRequest(secret, timestamp, { method, target: path, body }),
      }
      return callAt(url, method, path, { headers, body })
    },
  }
}

/** By a connection of its own: Caddy closes those that are idle when it reads its settings anew. */
async function callAt(
  url: string,
  method: string,
  path: string,
  { headers = {}, body }: CallOptions = {},
): Promise<Response<never>> {
  const answer = await request(`${url}${path}`, {
    method: method as 'GET',
    headers,
    reset: true,
    ...(body === undefined ? {} : { body }),
  })
  const text = await answer.body.text()
  return {
    status: answer.statusCode,
    headers: answer.headers,
    text,
    body: (text.startsWith('{') ? JSON.parse(text) : text) as never,
  }
}
