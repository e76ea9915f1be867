import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Shown } from '../cli/shown.ts'
import type { SellerKeys } from '../support/api.ts'
import { type DocPage, openDocPage } from '../support/doc-page.ts'
import { INTERNET, Internet, openCheckout, PAY, Payers, SHOP, SMTP } from './operator-walk-internet.ts'
import { Machine, prepareDebian, removeMachines } from './operator-walk-machine.ts'

export interface WalkFigures {
  readonly seconds: Readonly<Record<string, number>>
  /** Payments answered over TLS. */
  readonly payments: number
  /** The longest time without a completed payment while the daemon was upgraded and restarted. */
  readonly upgradeGapMs: number
  /** Score of `systemd-analyze security`. */
  readonly exposure: number
  readonly restoredPayments: number
}

const ROOT = join(import.meta.dirname, '../..')
export const WALK_PROGRAMS = ['debootstrap', 'systemd-nspawn', 'ip', 'curl']
const FIRST = '5.0.0.11'
const SECOND = '5.0.0.12'
const DEADLINE_MS = 120_000

/** Why the trial cannot run here; null if it can. */
function whatIsMissing(): string | null {
  if (process.getuid?.() !== 0) return 'root, who may start machines'
  if (!existsSync('/usr/bin/apt-get')) return 'Debian, whose packages it installs'
  const isThere = (program: string) =>
    ['/usr/bin', '/usr/sbin', '/bin', '/sbin'].some((folder) => existsSync(join(folder, program)))
  const missing = WALK_PROGRAMS.filter((program) => !isThere(program))
  return missing.length === 0 ? null : `${missing.join(', ')}: bin/system-packages --trials`
}

/**
 * Follows docs/operating.md on a fresh Debian with systemd as process 1, running the text of its blocks: install, TLS by each
 * proxy, payments, upgrade, backup, a power cut, restore on another machine, key rotation. Throws if a step does not do what
 * the page says.
 */
export async function operatorWalk(): Promise<WalkFigures> {
  const lack = whatIsMissing()
  if (lack !== null) throw new Error(`the operator's walk needs ${lack}`)
  prepareDebian()
  // In a separate network, where all addresses and ports are free.
  const walk = spawn('unshare', ['--net', process.execPath, import.meta.filename], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const message = once(walk, 'message') as Promise<[WalkFigures]>
  const ended = (once(walk, 'exit') as Promise<[number | null]>).then(([code]) => {
    throw new Error(`the walk ended with ${code ?? 'a signal'}`)
  })
  const [figures] = await Promise.race([message, ended])
  await ended.catch(() => undefined)
  return figures
}

/** The steps done so far, each with its time. */
class Diary {
  readonly seconds: Record<string, number> = {}

  async step<T>(name: string, run: () => Promise<T>): Promise<T> {
    const startedMs = performance.now()
    const result = await run()
    this.seconds[name] = Math.round((performance.now() - startedMs) / 100) / 10
    process.stdout.write(`  ${String(this.seconds[name]).padStart(6)} s  ${name}\n`)
    return result
  }
}

const RELAY_SECRET = 'relay-secret-of-the-trial'

interface Walk {
  readonly diary: Diary
  readonly page: DocPage
  readonly internet: Internet
  readonly origin: Origin
  readonly first: Machine
  readonly second: Machine
}

async function walk(): Promise<WalkFigures> {
  const folder = mkdtempSync(join(tmpdir(), 'paygate-walk-'))
  execFileSync('ip', ['link', 'set', 'lo', 'up'])
  execFileSync('ip', ['addr', 'add', INTERNET, 'dev', 'lo'])
  const origin = new Origin(folder)
  const hosts = (address: string) => [`${address} ${PAY}`, `${INTERNET} ${SHOP} ${SMTP}`]
  const options = (name: string, address: string) => ({
    ...{ folder: join(folder, name), address, gateway: INTERNET, hosts: hosts(address) },
    ...{ origin: origin.folder, outsidePid: process.ppid },
  })
  const internet = await Internet.open()
  const machines: Machine[] = []
  const diary = new Diary()
  try {
    const page = openDocPage('docs/operating.md')
    const [packages = ''] = page.blocks('Install as a service', 'bash')
    const first = Machine.install(options('first', FIRST))
    machines.push(first)
    await diary.step('a fresh Debian 12 starts', () => first.boot())
    await diary.step('install: packages and program', async () => {
      await first.run(packages.replace('git clone …', 'git clone --quiet /srv/origin'))
      await first.powerOff()
    })
    const second = Machine.install(options('second', SECOND), first)
    machines.push(second)
    await first.boot()
    return await walkOn({ diary, page, internet, origin, first, second })
  } finally {
    for (const machine of machines) await machine.cutPower()
    await internet.stop()
    removeMachines(folder)
  }
}

async function walkOn(walk: Walk): Promise<WalkFigures> {
  const { diary, internet, first, second } = walk
  await diary.step('install: database and service', () => install(walk, first))
  const exposure = await diary.step('the unit, as systemd runs it', () => checkUnit(walk, first))
  const seller = await diary.step('an app and a plan', () => openApp(walk, first))
  internet.pointTo(FIRST)
  await diary.step('TLS by nginx', () => putInFront(walk, first, 'nginx', seller))
  await first.run('systemctl disable --now nginx')
  await diary.step('TLS by Caddy', () => putInFront(walk, first, 'caddy', seller))
  await diary.step('logs', () => readLogs(walk, first, seller))
  await diary.step('doctor finds no problem', () => expectHealthy(first))
  const upgrade = await diary.step('upgrade while payers pay', () => upgradeUnderLoad(walk, first, seller))
  const backup = await diary.step('backup while payers pay', () => backUp(walk, first, seller))
  await diary.step('a power cut', () => cutPower(walk, first, seller, backup.done))
  await first.run('systemctl disable --now billing-daemon')
  await diary.step('another machine starts', () => second.boot())
  await diary.step('restore there', () => restore(walk, first, second))
  internet.pointTo(SECOND)
  await diary.step('payments go on there', () => checkRestored(walk, second, seller, backup.before))
  await diary.step('another encryption key', () => rotateKey(walk, second))
  const payments = upgrade.payments + backup.done.length
  return {
    seconds: diary.seconds,
    payments,
    upgradeGapMs: upgrade.gapMs,
    exposure,
    restoredPayments: backup.before.length,
  }
}

/** Replaces the editor that a block of the page opens with a sed script. */
function typeIntoEditor(machine: Machine, script: string): void {
  writeFileSync(machine.path('/root/typed.sed'), script)
  const lines = ['#!/bin/sh', 'exec sed -i -f /root/typed.sed "$1"', '']
  writeFileSync(machine.path('/usr/local/bin/editor'), lines.join('\n'), { mode: 0o755 })
}

async function install({ page, internet, origin }: Walk, machine: Machine): Promise<void> {
  const [, database = '', service = ''] = page.blocks('Install as a service', 'bash')
  await machine.run(database)
  copyFileSync(internet.authority.caPath, machine.path('/etc/paygate/ca.pem'))
  writeFileSync(machine.path('/etc/paygate/credentials/BILLING_RELAY_SECRET'), RELAY_SECRET, { mode: 0o600 })
  const [, authority] = /`(NODE_EXTRA_CA_CERTS=[^`]+)`/.exec(page.section('Operating')) ?? []
  const settings = [
    `BILLING_MAIL_FROM=Billing <billing@${PAY}>`,
    `BILLING_RELAY_AUTHSERV_IDS=mx.${PAY}`,
    `BILLING_RELAY_ADDRESS=bank+{code}@${PAY}`,
    'BILLING_LOG_LEVEL=debug',
    authority,
  ]
  typeIntoEditor(machine, `s|^BILLING_BASE_URL=.*|BILLING_BASE_URL=https://${PAY}|\n$a ${settings.join('\\n')}\n`)
  const said = await machine.run(service)
  // Only the upgrade has the newest migration.
  if (said.includes(origin.newestMigration)) throw new Error(`this version has ${origin.newestMigration}`)
}

/** Checks the running unit: an unprivileged user of its own, filtered system calls, watchdog pings. Returns its exposure. */
async function checkUnit({ page }: Walk, machine: Machine): Promise<number> {
  expectText(await machine.run('systemd-analyze verify billing-daemon.service 2>&1'), /^$/)
  const security = await machine.run('systemd-analyze security --no-pager billing-daemon')
  const exposure = Number(/Overall exposure level for billing-daemon\.service: ([\d.]+)/.exec(security)?.[1])
  const show = async (property: string) => (await machine.run(`systemctl show -P ${property} billing-daemon`)).trim()
  const status = await machine.run('cat /proc/$(systemctl show -P MainPID billing-daemon)/status')
  expectText(status, /^Uid:\t(?!0\t)/m)
  for (const set of ['Prm', 'Eff', 'Bnd', 'Amb']) expectText(status, new RegExp(`^Cap${set}:\t0+$`, 'm'))
  expectText(status, /^NoNewPrivs:\t1$/m)
  expectText(status, /^Seccomp:\t2$/m)
  expectText(await show('StatusText'), /^listening on 127\.0\.0\.1:8080$/)
  const ready = await show('WatchdogTimestampMonotonic')
  await until('a sign of life reaches the watchdog', async () => (await show('WatchdogTimestampMonotonic')) !== ready)
  const claimed = Number(/`systemd-analyze security`: ([\d.]+)/.exec(page.section('Operating'))?.[1])
  if (!(exposure <= claimed)) throw new Error(`the unit's exposure is ${exposure}, and the page says ${claimed}`)
  return exposure
}

async function openApp({ internet }: Walk, machine: Machine): Promise<SellerKeys> {
  const { cli } = machine
  const hooks = `--webhook-url https://${SHOP}/hooks`
  const app = await cli(`app create --name Reader --auth hmac --sandbox ${hooks}`)
  internet.receiver.secret = (await cli(`app rotate-webhook-secret ${app.app_id}`)).webhook_secret
  await cli(`method enable ${app.app_id} test`)
  await cli(`plan create ${app.app_id} --code premium --name Premium --price 99000:VND:month`)
  return { apiKey: app.api_key, secret: app.api_secret }
}

const PROXY_FILES = {
  nginx: { folder: `/etc/letsencrypt/live/${PAY}`, user: 'root' },
  caddy: { folder: '/etc/caddy', user: 'caddy' },
} as const
type Proxy = keyof typeof PROXY_FILES

/** Installs a proxy with its block of the page, and uses the service through it. */
async function putInFront(walk: Walk, machine: Machine, proxy: Proxy, seller: SellerKeys): Promise<void> {
  await configureProxy(walk, machine, proxy)
  const { internet } = walk
  await until('the proxy answers', async () => (await statusOf(() => internet.call('GET', '/healthz'))) === 200)
  await checkAnswers(internet, seller)
  await checkPayment(internet, seller, `${proxy} 1/ü`)
  await checkLimits(internet, seller)
  await checkHidden(internet, machine)
}

async function configureProxy({ page, internet }: Walk, machine: Machine, proxy: Proxy): Promise<void> {
  const block = page.block('Reverse proxy', proxy)
  const [, file = ''] = /^# (\/\S+)/.exec(block) ?? []
  const [, packages = ''] = /\((apt-get install [^)]+)\)/.exec(block) ?? []
  await machine.run(`${packages} -y --no-install-recommends`)
  const { folder, user } = PROXY_FILES[proxy]
  await machine.run(`mkdir -p ${folder}`)
  const { cert, key } = internet.authority.issue(PAY)
  writeFileSync(machine.path(`${folder}/fullchain.pem`), cert)
  writeFileSync(machine.path(`${folder}/privkey.pem`), key, { mode: 0o600 })
  await machine.run(`chown ${user} ${folder}/privkey.pem`)
  const ours = `tls ${folder}/fullchain.pem ${folder}/privkey.pem`
  writeFileSync(machine.path(file), proxy === 'caddy' ? block.replace(`${PAY} {`, `${PAY} {\n  ${ours}`) : block)
  await machine.run(`systemctl enable --now ${proxy} && systemctl reload ${proxy}`)
}

async function checkAnswers(internet: Internet, seller: SellerKeys): Promise<void> {
  const { status, headers } = await internet.call('GET', '/healthz')
  const expected = {
    'strict-transport-security': 'max-age=31536000',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
  }
  expectEqual([status, ...Object.keys(expected).map((name) => headers[name])], [200, ...Object.values(expected)])
  const refused = await internet.signed({ ...seller, secret: 'wrong' }, 'GET', '/api/v1/plans')
  expectEqual([refused.status, refused.headers['strict-transport-security']], [401, 'max-age=31536000'])
  const unknown = await internet.call('GET', `/checkout/${'0'.repeat(64)}`)
  expectEqual([unknown.status, unknown.headers['referrer-policy']], [404, 'no-referrer'])
  expectText(String(unknown.headers['content-security-policy']), /frame-ancestors 'none'/)
}

/** A payment in a browser, by an end user whose name must be escaped in paths; the seller is notified over https. */
async function checkPayment(internet: Internet, seller: SellerKeys, externalRef: string): Promise<void> {
  const before = internet.receiver.received.length
  const checkout = await openCheckout(internet, seller, externalRef)
  expectText(checkout, new RegExp(`^https://${PAY}/checkout/[0-9a-f]{64}$`))
  expectEqual(await internet.payInBrowser(checkout), 'Thanks')
  await internet.receiver.waitFor(before + 1)
  const [webhook] = internet.receiver.received.slice(before)
  expectEqual([webhook!.verified, webhook!.body.data.external_ref], [true, externalRef])
  const path = `/api/v1/subscriptions/${encodeURIComponent(externalRef)}` as const
  const subscription = await internet.signed(seller, 'GET', path)
  expectEqual([subscription.status, subscription.body.data?.status], [200, 'active'])
}

/** The proxy forwards everything that the service accepts, and leaves refusals to the service. */
async function checkLimits(internet: Internet, seller: SellerKeys): Promise<void> {
  const relayed = await internet.relayed(RELAY_SECRET, 250 * 1024)
  expectEqual([relayed.status, relayed.body.status], [200, 'ignored'])
  const tooLarge = await internet.relayed(RELAY_SECRET, 280 * 1024)
  expectEqual([tooLarge.status, tooLarge.body.error?.code], [400, 'invalid_request'])
  const large = await internet.signed(seller, 'POST', '/api/v1/customers', { name: 'x'.repeat(110 * 1024) })
  expectEqual([large.status, large.body.error?.code], [413, 'payload_too_large'])
}

/** Without a token nobody reads metrics behind a proxy, and the daemon itself is not reachable from the network. */
async function checkHidden(internet: Internet, machine: Machine): Promise<void> {
  for (const path of ['/metrics', '/metrics/', '/METRICS', '//metrics', '/%6detrics', '/metrics?x=1']) {
    const { status } = await internet.call('GET', path)
    if (status !== 404 && status !== 403) throw new Error(`${path} answers ${status} from outside`)
  }
  expectText(machine.fromInside('curl', '-sS', 'http://127.0.0.1:8080/metrics'), /"forbidden"/)
  const code = await new Promise((resolve) => {
    const socket = connect(8080, machine.address, () => resolve('connected'))
    socket.once('error', ({ message }) => resolve(message)).once('close', () => socket.destroy())
  })
  expectText(String(code), /ECONNREFUSED/)
}

/** The commands of docs/operating.md, Logs: a request is found by its id, with the client's address. */
async function readLogs({ page, internet }: Walk, machine: Machine, seller: SellerKeys): Promise<void> {
  const [follow = '', find = ''] = page.block('Logs', 'bash').trim().split('\n')
  const headers = { 'X-Forwarded-For': '198.51.100.7' }
  const answer = await internet.call('GET', '/api/v1/plans', { headers })
  const id = String(answer.headers['x-request-id'])
  let line = ''
  // Written up to 20 ms after the answer, and then read by journald.
  const isLogged = async () => (line = await machine.run(find.replace('…', id))) !== ''
  await until(() => `the log has ${id}`, isLogged)
  const logged = JSON.parse(line) as { client: string; status: number }
  expectEqual([logged.client, logged.status], [INTERNET, 401])
  await machine.run(follow.replace(' -f ', ' '))
  const log = await machine.run('journalctl -u billing-daemon -o cat')
  for (const secret of [seller.secret, RELAY_SECRET, internet.receiver.secret!])
    expectText(log, new RegExp(`^(?!.*${secret})`, 's'))
}

/** `doctor` reports neither failures nor warnings; the disk is that of whoever runs the trial, and backups are steps of their own. */
async function expectHealthy(machine: Machine): Promise<void> {
  let unwell: Shown<'doctor'>
  const isWell = async () => {
    const { stdout, code } = await machine.try('billing-cli doctor --json')
    const checks = JSON.parse(stdout) as Shown<'doctor'>
    unwell = checks.filter(({ check, fix }) => fix !== null && !['backups', 'disk'].includes(check))
    return code === 0 && unwell.length === 0
  }
  await until(() => `doctor finds all well: ${JSON.stringify(unwell)}`, isWell)
}

async function upgradeUnderLoad(
  { page, internet, origin }: Walk,
  machine: Machine,
  seller: SellerKeys,
): Promise<{ payments: number; gapMs: number }> {
  await machine.run(page.block('Backups', 'bash', 'age-keygen -o'))
  const block = page.block('Upgrades', 'bash')
  const migrate = block.indexOf('billing-cli migrate')
  const payers = new Payers(internet, seller, 'upgrade', 3)
  await payers.waitFor(20)
  origin.publishNewest()
  expectText(await machine.run(`exec 2>&1\n${block.slice(0, migrate)}`), /^Installing the npm packages/m)
  await payers.waitFor(20)
  if (payers.refusals.length > 0) throw new Error(`before the migration: ${payers.refusals.join('\n')}`)
  const said = await machine.run(`exec 2>&1\n${block.slice(migrate)}`)
  expectText(said, new RegExp(`^${origin.newestMigration}$`, 'm'))
  await payers.waitFor(20)
  await payers.stop()
  return { payments: payers.done.length, gapMs: Math.round(payers.longestGapMs) }
}

interface Backup {
  /** Payments answered before the backup began. */
  readonly before: readonly string[]
  readonly done: readonly string[]
}

async function backUp({ page, internet }: Walk, machine: Machine, seller: SellerKeys): Promise<Backup> {
  const payers = new Payers(internet, seller, 'backup', 3)
  await payers.waitFor(50)
  const before = payers.done.map(({ externalRef }) => externalRef)
  await machine.run(page.block('Backups', 'bash', 'key export'))
  await payers.waitFor(20)
  await payers.stop()
  if (payers.refusals.length > 0) throw new Error(`while the backup was made: ${payers.refusals.join('\n')}`)
  return { before, done: payers.done.map(({ externalRef }) => externalRef) }
}

/** After a power cut everything restarts by itself, and no answered payment is lost. */
async function cutPower(
  { internet }: Walk,
  machine: Machine,
  seller: SellerKeys,
  done: readonly string[],
): Promise<void> {
  await machine.cutPower()
  await machine.boot()
  await until('the service is back', async () => (await statusOf(() => internet.call('GET', '/readyz'))) === 200)
  await expectActive(internet, seller, done)
  await machine.run('billing-cli ledger verify')
}

async function restore(walk: Walk, from: Machine, to: Machine): Promise<void> {
  const { page } = walk
  const [, database = ''] = page.blocks('Install as a service', 'bash')
  await to.run(database)
  for (const folder of ['/var/backups/paygate', '/root/paygate-settings']) {
    for (const file of readdirSync(from.path(folder)))
      copyFileSync(from.path(`${folder}/${file}`), to.path(`/root/${file}`))
  }
  const kept = ['BILLING_SMTP_URL', 'BILLING_RELAY_SECRET'].map((name) => `credentials/${name}`)
  for (const file of ['ca.pem', ...kept])
    copyFileSync(from.path(`/etc/paygate/${file}`), to.path(`/etc/paygate/${file}`))
  await to.run(page.block('Backups', 'bash', 'backup restore'))
  await configureProxy(walk, to, 'nginx')
}

async function checkRestored(
  { internet }: Walk,
  machine: Machine,
  seller: SellerKeys,
  before: readonly string[],
): Promise<void> {
  await until('the service answers there', async () => (await statusOf(() => internet.call('GET', '/readyz'))) === 200)
  await expectActive(internet, seller, before)
  await checkPayment(internet, seller, 'after the restore')
  await machine.run('billing-cli webhook test 1')
  await expectHealthy(machine)
  await machine.run('billing-cli ledger verify')
}

async function rotateKey({ page, internet }: Walk, machine: Machine): Promise<void> {
  typeIntoEditor(machine, `s|^|k2:${randomBytes(32).toString('base64')},|\n`)
  const said = await machine.run(page.block('Rotate the encryption key', 'bash'))
  expectText(said, /^[1-9]\d* secrets rotated/m)
  typeIntoEditor(machine, 's|,.*||\n')
  await machine.run('editor /etc/paygate/credentials/BILLING_ENCRYPTION_KEYS && systemctl restart billing-daemon')
  const before = internet.receiver.received.length
  await machine.run('billing-cli webhook test 1')
  expectEqual(internet.receiver.received[before]?.verified, true)
  expectText(await machine.run('billing-cli doctor'), /can be decrypted with key "k2"/)
}

async function expectActive(internet: Internet, seller: SellerKeys, refs: readonly string[]): Promise<void> {
  for (const externalRef of refs) {
    const answer = await internet.signed(seller, 'GET', `/api/v1/subscriptions/${externalRef}`)
    if (answer.body.data?.status !== 'active')
      throw new Error(`${externalRef} had paid: ${answer.status} ${answer.text}`)
  }
}

/**
 * The repository that machines clone: first the checked-out version, then a next one with one more migration and another
 * list of packages. (An earlier version would have an earlier page.)
 */
class Origin {
  readonly folder: string
  /** What the upgrade adds. */
  readonly newestMigration = 'Walk9000000000000'

  constructor(folder: string) {
    this.folder = join(folder, 'origin')
    execFileSync('git', ['clone', '--quiet', '--no-hardlinks', ROOT, this.folder])
  }

  publishNewest(): void {
    const name = this.newestMigration
    const file = '9000000000000-walk.ts'
    const table = 'CREATE TABLE IF NOT EXISTS walk (id BIGINT NOT NULL AUTO_INCREMENT, PRIMARY KEY (id)) ENGINE=InnoDB'
    const up = `up(runner: { query(sql: string): Promise<unknown> }): Promise<unknown> { return runner.query('${table}') }`
    writeFileSync(
      join(this.folder, 'migrations', file),
      `export class ${name} { phase = 'expand'; work = {}; ${up} }\n`,
    )
    const lock = join(this.folder, 'package-lock.json')
    writeFileSync(lock, `${readFileSync(lock, 'utf8')}\n`)
    this.#git('add', '--all')
    this.#git('commit', '--quiet', '--message=The next version')
  }

  #git(...words: readonly string[]): string {
    const author = ['-c', 'user.name=Trial', '-c', 'user.email=trial@example.com']
    return execFileSync('git', ['-C', this.folder, ...author, ...words], { encoding: 'utf8' }).trim()
  }
}

async function until(what: string | (() => string), holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + DEADLINE_MS
  while (!(await holds())) {
    if (performance.now() > deadline)
      throw new Error(`timed out waiting until ${typeof what === 'string' ? what : what()}`)
    await delay(200)
  }
}

/** The status of an answer; null if there was none. */
async function statusOf(ask: () => Promise<{ readonly status: number }>): Promise<number | null> {
  try {
    return (await ask()).status
  } catch {
    return null
  }
}

function expectText(text: string, pattern: RegExp): void {
  if (!pattern.test(text)) throw new Error(`${pattern.source} is not in:\n${text.slice(-3000)}`)
}

function expectEqual(actual: unknown, expected: unknown): void {
  const [is, should] = [JSON.stringify(actual), JSON.stringify(expected)]
  if (is !== should) throw new Error(`${is} instead of ${should}`)
}

if (import.meta.main) process.send!(await walk(), () => process.disconnect())
