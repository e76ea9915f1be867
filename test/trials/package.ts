import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { sha256Hex } from '#shared/crypto.ts'
import type { SellerKeys } from '../support/api.ts'
import { INTERNET, Internet, openCheckout, PAY, SHOP, SMTP } from './operator-walk-internet.ts'
import { Machine, prepareDebian, removeMachines, type DebianVersion } from './operator-walk-machine.ts'

interface PackageFigures {
  readonly megabytes: number
  /** From `apt install` of the package to a paid checkout over TLS, by the version of Debian. */
  readonly secondsToPayment: Readonly<Record<string, number>>
}

const ROOT = join(import.meta.dirname, '../..')
const ADDRESS = '5.0.0.13'
const MOST_MEGABYTES = 60
const MOST_SECONDS = 300
const DEADLINE_MS = 120_000

/**
 * Builds the package twice, which gives the same bytes, checks it by lintian, and installs it on the smallest Debian with systemd: the service
 * waits for `setup`, which makes it answer over TLS, with Paygate's own database. Removing keeps everything, and so does purging where nobody can be asked.
 */
export async function debianPackage({ versions }: { versions: readonly DebianVersion[] }): Promise<PackageFigures> {
  const file = build(join(ROOT, 'dist'))
  const again = build(mkdtempSync(join(tmpdir(), 'paygate-package-')))
  expectEqual(sha256Hex(readFileSync(again)), sha256Hex(readFileSync(file)))
  const megabytes = Math.round(statSync(file).size / 1e5) / 10
  if (megabytes > MOST_MEGABYTES) throw new Error(`${file} has ${megabytes} MB`)
  execFileSync('lintian', ['--allow-root', '--fail-on', 'error', file], { stdio: 'pipe' })
  const secondsToPayment: Record<string, number> = {}
  for (const version of versions) {
    prepareDebian(version)
    secondsToPayment[`debian ${version}`] = await inOwnNetwork(version, file)
  }
  return { megabytes, secondsToPayment }
}

function build(folder: string): string {
  const words = [join(ROOT, 'packaging/main.ts'), '--into', folder]
  return execFileSync(process.execPath, words, { cwd: ROOT, encoding: 'utf8' }).trim()
}

/** In a separate network, where all addresses and ports are free. */
async function inOwnNetwork(version: DebianVersion, file: string): Promise<number> {
  const run = spawn('unshare', ['--net', process.execPath, import.meta.filename, String(version), file], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const message = once(run, 'message') as Promise<[number]>
  const ended = (once(run, 'exit') as Promise<[number | null]>).then(([code]) => {
    throw new Error(`the installation on Debian ${version} ended with ${code ?? 'a signal'}`)
  })
  const [seconds] = await Promise.race([message, ended])
  await ended.catch(() => undefined)
  return seconds
}

async function installOn(version: DebianVersion, file: string): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'paygate-install-'))
  execFileSync('ip', ['link', 'set', 'lo', 'up'])
  execFileSync('ip', ['addr', 'add', INTERNET, 'dev', 'lo'])
  const internet = await Internet.open()
  const machine = Machine.install({
    ...{ folder: join(folder, 'machine'), address: ADDRESS, gateway: INTERNET, version },
    ...{ hosts: [`${ADDRESS} ${PAY}`, `${INTERNET} ${SHOP} ${SMTP}`], origin: ROOT, outsidePid: process.ppid },
  })
  try {
    await machine.boot()
    copyFileSync(file, machine.path(`/root/${basename(file)}`))
    return await walk(machine, internet, `/root/${basename(file)}`)
  } finally {
    await machine.cutPower()
    await internet.stop()
    removeMachines(folder)
  }
}

async function walk(machine: Machine, internet: Internet, file: string): Promise<number> {
  await machine.run('apt-get update')
  const startedMs = performance.now()
  await machine.run(`apt-get install -y ${file}`)
  expectEqual((await machine.try('systemctl is-enabled billing-daemon')).stdout.trim(), 'enabled')
  expectEqual((await machine.try('systemctl is-active billing-daemon')).stdout.trim(), 'inactive')
  expectEqual((await machine.run('systemctl --failed --plain --no-legend')).trim(), '')
  writeAnswers(machine, internet)
  await setUp(machine, ['failed', 'skipped'])
  const seller = await openShop(machine)
  internet.pointTo(ADDRESS)
  expectEqual(await internet.payInBrowser(await openCheckout(internet, seller, 'first')), 'Thanks')
  const seconds = Math.round((performance.now() - startedMs) / 1000)
  if (seconds > MOST_SECONDS) throw new Error(`the first payment took ${seconds} s`)
  await setUp(machine, ['failed', 'skipped', 'done'])
  await checkDaemonAway(machine)
  await checkRemoval(machine, internet, seller, file)
  return seconds
}

function writeAnswers(machine: Machine, internet: Internet): void {
  const { cert, key } = internet.authority.issue(PAY)
  mkdirSync(machine.path('/etc/tls'))
  writeFileSync(machine.path('/etc/tls/cert.pem'), cert)
  writeFileSync(machine.path('/etc/tls/key.pem'), key, { mode: 0o644 })
  copyFileSync(internet.authority.caPath, machine.path('/etc/paygate/ca.pem'))
  writeFileSync(machine.path('/etc/paygate/billing.env'), 'NODE_EXTRA_CA_CERTS=/etc/paygate/ca.pem\n')
  const answers = {
    ...{ base_url: `https://${PAY}`, database: 'embedded-service', first_app: 'Reader', proxy: 'caddy' },
    ...{ smtp_url: `smtps://user:password@${SMTP}`, mail_from: 'Billing <billing@example.com>' },
    ...{ cert_file: '/etc/tls/cert.pem', key_file: '/etc/tls/key.pem' },
  }
  const lines = Object.entries(answers).map(([name, value]) => `${name}=${value}\n`)
  writeFileSync(machine.path('/root/answers'), lines.join(''), { mode: 0o600 })
}

/** Runs it, and throws where a step has a state that it must not have. */
async function setUp(machine: Machine, unwanted: readonly string[]): Promise<void> {
  const { stdout, stderr } = await machine.try('billing-cli setup --answers answers --json')
  if (stdout === '') throw new Error(stderr)
  const { steps } = JSON.parse(stdout) as { steps: { name: string; status: string; detail: string }[] }
  const wrong = steps.filter(({ status }) => unwanted.includes(status))
  if (wrong.length === 0) return
  const log = await machine.try('journalctl -u billing-daemon -o cat --no-pager | tail -n 30')
  throw new Error(`${JSON.stringify(wrong, null, 2)}\n${log.stdout}`)
}

async function openShop(machine: Machine): Promise<SellerKeys> {
  const cli = async (words: string) => JSON.parse(await machine.run(`billing-cli ${words} --json`))
  const app = await cli('app create --name Trial --auth hmac --sandbox')
  await cli(`method enable ${app.app_id} test`)
  await cli(`plan create ${app.app_id} --code premium --name Premium --price 99000:VND:month`)
  return { apiKey: app.api_key, secret: app.api_secret }
}

/** The command line starts the service's own database as the service's user, so that the daemon can go on with it. */
async function checkDaemonAway(machine: Machine): Promise<void> {
  await machine.run('systemctl stop billing-daemon && billing-cli app list && billing-cli ledger verify')
  await machine.run('systemctl start billing-daemon && billing-cli doctor')
}

async function checkRemoval(machine: Machine, internet: Internet, seller: SellerKeys, file: string): Promise<void> {
  await machine.run('apt-get remove -y paygate')
  expectEqual((await machine.try('command -v billing-cli')).stdout, '')
  await machine.run('test -s /etc/paygate/credentials/BILLING_ENCRYPTION_KEYS')
  await machine.run(`apt-get install -y ${file}`)
  await until(async () => (await internet.signed(seller, 'GET', '/api/v1/subscriptions/first')).status === 200)
  await machine.run('apt-get purge -y paygate')
  await machine.run('test -s /etc/paygate/credentials/BILLING_ENCRYPTION_KEYS -a -d /var/lib/paygate/database')
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + DEADLINE_MS
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error('the service does not answer')
    await delay(200)
  }
}

function expectEqual(actual: unknown, expected: unknown): void {
  if (actual !== expected) throw new Error(`${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`)
}

if (import.meta.main) {
  const [version = '', file = ''] = process.argv.slice(2)
  process.send!(await installOn(Number(version) as DebianVersion, file), () => process.disconnect())
}
