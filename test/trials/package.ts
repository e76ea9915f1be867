import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { sha256Hex } from '#shared/crypto.ts'
import { messageOf } from '#shared/errors.ts'
import type { SellerKeys } from '../support/api.ts'
import { scratchFolder } from '../support/scratch.ts'
import { INTERNET, Internet, openCheckout, PAY, SHOP, SMTP } from './operator-walk-internet.ts'
import { Machine, prepareDebian, removeMachines, type DebianVersion } from './operator-walk-machine.ts'
import { liveOn, setUp, writeAnswers, type LifeFigures } from './package-life.ts'

interface PackageOptions {
  readonly versions: readonly DebianVersion[]
  /** Paid on the first of them, before and after what goes wrong there. */
  readonly payments: number
}

interface PackageFigures {
  readonly megabytes: number
  readonly machines: readonly MachineFigures[]
}

interface MachineFigures {
  readonly debian: DebianVersion
  /** From `apt install` of the package to a paid checkout over TLS. */
  readonly secondsToPayment: number
  readonly life: LifeFigures | null
}

const ROOT = join(import.meta.dirname, '../..')
const ADDRESS = '5.0.0.13'
const SECOND = '5.0.0.14'
const MOST_MEGABYTES = 60
const MOST_SECONDS = 300
const DEADLINE_MS = 120_000

/**
 * Builds the package twice, which gives the same bytes, checks it by lintian, and installs it on the smallest Debian with systemd: the service
 * waits for `setup`, which makes it answer over TLS, with Paygate's own database. On the first version of Debian payers then pay through a backup,
 * an upgrade and a power cut, and everything is restored elsewhere. Removing keeps everything, and so does purging where nobody can be asked.
 */
export async function debianPackage({ versions, payments }: PackageOptions): Promise<PackageFigures> {
  const file = build(join(ROOT, 'dist'))
  const again = build(scratchFolder('package'))
  expectEqual(sha256Hex(readFileSync(again)), sha256Hex(readFileSync(file)))
  const megabytes = Math.round(statSync(file).size / 1e5) / 10
  if (megabytes > MOST_MEGABYTES) throw new Error(`${file} has ${megabytes} MB`)
  execFileSync('lintian', ['--allow-root', '--fail-on', 'error', file], { stdio: 'pipe' })
  const machines: MachineFigures[] = []
  for (const [index, version] of versions.entries()) {
    prepareDebian(version)
    machines.push(await inOwnNetwork(version, file, index === 0 ? payments : 0))
  }
  return { megabytes, machines }
}

function build(folder: string): string {
  const words = [join(ROOT, 'packaging/main.ts'), '--into', folder]
  return execFileSync(process.execPath, words, { cwd: ROOT, encoding: 'utf8' }).trim()
}

/** In a separate network, where all addresses and ports are free. */
async function inOwnNetwork(version: DebianVersion, file: string, payments: number): Promise<MachineFigures> {
  const words = ['--net', process.execPath, import.meta.filename, String(version), file, String(payments)]
  const run = spawn('unshare', words, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const message = once(run, 'message') as Promise<[MachineFigures | { readonly failure: string }]>
  const ended = (once(run, 'exit') as Promise<[number | null]>).then(([code]) => {
    throw new Error(`the installation on Debian ${version} ended with ${code ?? 'a signal'}`)
  })
  const [figures] = await Promise.race([message, ended])
  await ended.catch(() => undefined)
  if ('failure' in figures) throw new Error(`Debian ${version}: ${figures.failure}`)
  return figures
}

async function installOn(version: DebianVersion, file: string, payments: number): Promise<MachineFigures> {
  const folder = mkdtempSync(join(tmpdir(), 'paygate-install-'))
  execFileSync('ip', ['link', 'set', 'lo', 'up'])
  execFileSync('ip', ['addr', 'add', INTERNET, 'dev', 'lo'])
  const internet = await Internet.open()
  const machineAt = (address: string): Machine =>
    Machine.install({
      ...{ folder: join(folder, address), address, gateway: INTERNET, version },
      ...{ hosts: [`${address} ${PAY}`, `${INTERNET} ${SHOP} ${SMTP}`], origin: ROOT, outsidePid: process.ppid },
    })
  const machine = machineAt(ADDRESS)
  const machines = [machine]
  try {
    await machine.boot()
    copyFileSync(file, machine.path(`/root/${basename(file)}`))
    const { seconds, seller } = await walk(machine, internet, `/root/${basename(file)}`)
    let life: LifeFigures | null = null
    if (payments > 0) {
      const second = machineAt(SECOND)
      machines.push(second)
      life = await liveOn({ machine, second, internet, seller, file, payments })
    } else await checkRemoval(machine, internet, seller, `/root/${basename(file)}`)
    return { debian: version, secondsToPayment: seconds, life }
  } finally {
    for (const each of machines) await each.cutPower()
    await internet.stop()
    removeMachines(folder)
  }
}

async function walk(
  machine: Machine,
  internet: Internet,
  file: string,
): Promise<{ readonly seconds: number; readonly seller: SellerKeys }> {
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
  return { seconds, seller }
}

async function openShop(machine: Machine): Promise<SellerKeys> {
  const { cli } = machine
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
  await machine.run('test -s /etc/paygate/credentials/BILLING_ENCRYPTION_KEYS -a ! -e /usr/lib/paygate-versions')
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
  const [version = '', file = '', payments = ''] = process.argv.slice(2)
  const figures = await installOn(Number(version) as DebianVersion, file, Number(payments)).catch((error: unknown) => ({
    failure: messageOf(error),
  }))
  process.send!(figures, () => process.disconnect())
}
