import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import type { SellerKeys } from '../support/api.ts'
import { scratchFolder } from '../support/scratch.ts'
import { openCheckout, PAY, Payers, SMTP, type Internet } from './operator-walk-internet.ts'
import type { Machine } from './operator-walk-machine.ts'

export interface LifeFigures {
  /** Answered payments, and the sum of all that are in the database at the end, in VND. */
  readonly payments: number
  readonly sum: number
  /** Of a backup while payers pay. */
  readonly backupSeconds: number
  readonly verifySeconds: number
  /**
   * The longest time without a completed payment: while a package was installed whose daemon does not start and the version before served
   * again, while a newer one was installed and served, and while the power was away.
   */
  readonly failedUpgradeGapMs: number
  readonly upgradeGapMs: number
  readonly powerCutGapMs: number
  readonly restoreSeconds: number
}

export interface LifeOptions {
  readonly machine: Machine
  /** A bare one, which is off. */
  readonly second: Machine
  readonly internet: Internet
  readonly seller: SellerKeys
  /** The package that is installed. */
  readonly file: string
  readonly payments: number
}

interface Totals {
  readonly payments: number
  readonly sum: number
  readonly checked: number
}

const PAYERS = 12
/** For a single machine. */
const MOST_GAP_MS = 5000
const PRICE = 99_000
const FOLDER = '/var/backups/paygate'
const IDENTITY = '/etc/paygate/backup-identity'
const DATABASE = 'mysql://paygate:password@127.0.0.1:3306/paygate'
const BROKEN_VERSION = '8.0.0'
const NEXT_VERSION = '9.0.0'
const NEXT_MIGRATION = 'Walk9000000000000'

/**
 * Payers pay while a backup is made, the next version is installed, and the power is cut. The last backup is restored on another machine with a
 * database server of Debian's. Throws unless every answered payment is there, with the same rows and sums.
 */
export async function liveOn(options: LifeOptions): Promise<LifeFigures> {
  const { machine, internet, seller, file, payments } = options
  await prepareBackups(machine)
  const [backedUp, backup] = await whilePaying(options, 'backup', payments / 2, async () => {
    const created = await timed(() => machine.run('billing-cli backup create'))
    return { created, verified: (await machine.cli('backup verify')).seconds }
  })
  const [broken, next] = [buildBroken(machine, file), buildNext(machine, file)]
  const [failed] = await whilePaying(options, 'failed-upgrade', payments / 8, () => upgradeInVain(machine, broken))
  const [upgraded] = await whilePaying(options, 'upgrade', payments / 8, () => upgrade(machine, next))
  const [cut] = await whilePaying(options, 'power-cut', payments / 4, async () => {
    await machine.cutPower()
    // Calls that were under way would wait for answers for minutes.
    internet.pointTo(machine.address)
    await machine.boot()
  })
  const parts = [backedUp, failed, upgraded, cut]
  const before = await totalsOf(machine)
  await machine.run('billing-cli backup create && systemctl disable --now billing-daemon')
  const restoreSeconds = await timed(() => restore(options, next))
  const after = await totalsOf(options.second)
  if (JSON.stringify(after) !== JSON.stringify(before))
    throw new Error(`${JSON.stringify(after)} are restored of ${JSON.stringify(before)}`)
  const done = parts.reduce((sum, part) => sum + part.payments, 0)
  // A payer whose answer was lost pays again; one more paid in a browser.
  if (before.payments <= done || before.sum !== before.payments * PRICE)
    throw new Error(`${done} payments were answered: ${JSON.stringify(before)}`)
  internet.pointTo(options.second.address)
  const title = await internet.payInBrowser(await openCheckout(internet, seller, 'elsewhere'))
  if (title !== 'Thanks') throw new Error(`the page after a payment there is ${title}`)
  // Last, so that a busy machine hides nothing else.
  if (upgraded.gapMs > MOST_GAP_MS)
    throw new Error(
      `no payment for ${upgraded.gapMs} ms in the upgrade, ${failed.gapMs} ms in the one that failed, ${cut.gapMs} ms in the power cut`,
    )
  return {
    ...{ payments: done, sum: before.sum, backupSeconds: backup.created, verifySeconds: backup.verified },
    ...{ failedUpgradeGapMs: failed.gapMs, upgradeGapMs: upgraded.gapMs, powerCutGapMs: cut.gapMs, restoreSeconds },
  }
}

interface Paid {
  readonly payments: number
  readonly gapMs: number
}

/** Does the work after the first half of the payments, and waits for the second. */
async function whilePaying<T>(
  { internet, seller }: LifeOptions,
  name: string,
  payments: number,
  work: () => Promise<T>,
): Promise<[Paid, T]> {
  const payers = new Payers(internet, seller, name, PAYERS)
  await payers.waitFor(payments / 2)
  const result = await work()
  await payers.waitFor(payments / 2)
  await payers.stop()
  return [{ payments: payers.done.length, gapMs: Math.round(payers.longestGapMs) }, result]
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now()
  await work()
  return Math.round((performance.now() - startedMs) / 100) / 10
}

async function prepareBackups(machine: Machine): Promise<void> {
  const identity = await generateX25519Identity()
  writeFileSync(machine.path(IDENTITY), `${identity}\n`, { mode: 0o600 })
  const settings = [
    `BILLING_BACKUP_DIR=${FOLDER}`,
    `BILLING_BACKUP_RECIPIENT=${await identityToRecipient(identity)}`,
    `BILLING_BACKUP_IDENTITY=${IDENTITY}`,
  ]
  const script = `install -d -m 755 ${FOLDER} && cat >> /etc/paygate/billing.env && systemctl restart billing-daemon`
  await machine.run(script, { input: `${settings.join('\n')}\n` })
}

/** As docs/operating.md says. Until the second command everything is of the version before. */
async function upgrade(machine: Machine, file: string): Promise<void> {
  await installBeside(machine, file)
  const { status, to, applied } = await machine.cli('upgrade')
  if (JSON.stringify([status, to, applied]) !== JSON.stringify(['upgraded', NEXT_VERSION, [NEXT_MIGRATION]]))
    throw new Error(`the upgrade is ${status} to ${to} with ${applied.join(', ')}`)
  await expectVersion(machine, NEXT_VERSION)
}

async function upgradeInVain(machine: Machine, file: string): Promise<void> {
  const before = (await machine.run('billing-cli --version')).trim()
  await installBeside(machine, file)
  const { code, stderr } = await machine.try('billing-cli upgrade')
  if (code !== 1 || !stderr.includes(`Version ${before} serves again`)) throw new Error(`${code}: ${stderr}`)
  await expectVersion(machine, before)
}

/** The daemon goes on, as the same process. */
async function installBeside(machine: Machine, file: string): Promise<void> {
  const daemon = 'systemctl show --property=MainPID --property=NRestarts billing-daemon && billing-cli --version'
  const before = await machine.run(daemon)
  await machine.run(`apt-get install -y ${file}`)
  const after = await machine.run(daemon)
  if (after !== before) throw new Error(`${after} instead of ${before} serves`)
}

async function expectVersion(machine: Machine, version: string): Promise<void> {
  const { stdout } = await machine.try(
    'billing-cli --version; systemctl is-active billing-daemon; ls /usr/lib/paygate-versions | grep -v current',
  )
  const [cli, active, ...copies] = stdout.trim().split('\n')
  if (cli !== version || active !== 'active' || copies.length !== 1 || !copies[0]?.startsWith(`${version}-`))
    throw new Error(`${stdout} instead of ${version}`)
}

/** A package of the next version, with one more migration, on the machine; its path there. */
function buildNext(machine: Machine, file: string): string {
  const table = 'CREATE TABLE IF NOT EXISTS walk (id BIGINT NOT NULL AUTO_INCREMENT, PRIMARY KEY (id)) ENGINE=InnoDB'
  const up = `up(runner: { query(sql: string): Promise<unknown> }): Promise<unknown> { return runner.query('${table}') }`
  const migration = `export class ${NEXT_MIGRATION} { phase = 'expand'; work = {}; ${up} }\n`
  return buildVersion(machine, file, NEXT_VERSION, { 'migrations/9000000000000-walk.ts': migration })
}

/** One that loads, and whose daemon ends at once. */
function buildBroken(machine: Machine, file: string): string {
  const serve = `export const rehearseStart = async () => {}\nexport const serve = () => Promise.reject(new Error('broken'))\n`
  return buildVersion(machine, file, BROKEN_VERSION, { 'src/daemon/serve.ts': serve })
}

function buildVersion(
  machine: Machine,
  file: string,
  version: string,
  files: Readonly<Record<string, string>>,
): string {
  const folder = scratchFolder('next')
  const root = join(folder, 'usr/lib/paygate')
  const rewrite = (path: string, from: RegExp, to: string) =>
    writeFileSync(path, readFileSync(path, 'utf8').replace(from, to))
  execFileSync('dpkg-deb', ['--raw-extract', file, folder])
  rewrite(join(folder, 'DEBIAN/control'), /^Version: .*$/m, `Version: ${version}`)
  rewrite(join(root, 'package.json'), /"version": "[^"]*"/, `"version": "${version}"`)
  for (const [path, content] of Object.entries(files)) writeFileSync(join(root, path), content)
  const built = `/root/paygate_${version}.deb`
  const words = ['--root-owner-group', '-Znone', '--build', folder, machine.path(built)]
  execFileSync('dpkg-deb', words, { stdio: 'ignore' })
  return built
}

/** The newest backup, on a machine of its own with the keys and a MariaDB of Debian's. */
async function restore({ machine, second, internet }: LifeOptions, next: string): Promise<void> {
  await second.boot()
  copyFileSync(machine.path(next), second.path(next))
  await second.run(`apt-get update && apt-get install -y mariadb-server ${next}`)
  const sql = `CREATE DATABASE paygate; CREATE USER paygate@localhost IDENTIFIED BY 'password'; GRANT ALL ON paygate.* TO paygate@localhost`
  await second.run(`mariadb -e "${sql}"`)
  mkdirSync(second.path('/etc/paygate/credentials'), { recursive: true, mode: 0o700 })
  for (const path of [IDENTITY, '/etc/paygate/credentials/BILLING_ENCRYPTION_KEYS'])
    copyFileSync(machine.path(path), second.path(path))
  const newest = (await machine.cli('backup list'))[0]!.file
  const copy = `/root/${basename(newest)}`
  copyFileSync(machine.path(newest), second.path(copy))
  writeAnswers(second, internet, DATABASE)
  const settings = `BILLING_ENV=development BILLING_DATABASE_URL=${DATABASE}`
  await second.run(`${settings} billing-cli backup restore ${copy} --into ${DATABASE} --identity ${IDENTITY}`)
  await setUp(second, ['failed', 'skipped'])
}

/** What is in the database, by its ledger and its rows of money. */
async function totalsOf(machine: Machine): Promise<Totals> {
  const { cli } = machine
  const { checked } = await cli('ledger verify')
  const words = `--recipient ${await identityToRecipient(await generateX25519Identity())} --pipe 'cat > /dev/null'`
  const { rows, sums } = await cli(`backup create ${words}`)
  return { payments: rows.payments!, sum: sums.payments!.amount!, checked }
}

export function writeAnswers(machine: Machine, internet: Internet, database = 'embedded-service'): void {
  const { cert, key } = internet.authority.issue(PAY)
  mkdirSync(machine.path('/etc/tls'))
  writeFileSync(machine.path('/etc/tls/cert.pem'), cert)
  writeFileSync(machine.path('/etc/tls/key.pem'), key, { mode: 0o644 })
  copyFileSync(internet.authority.caPath, machine.path('/etc/paygate/ca.pem'))
  writeFileSync(machine.path('/etc/paygate/billing.env'), 'NODE_EXTRA_CA_CERTS=/etc/paygate/ca.pem\n')
  const answers = {
    ...{ base_url: `https://${PAY}`, database, first_app: 'Reader', proxy: 'caddy' },
    ...{ smtp_url: `smtps://user:password@${SMTP}`, mail_from: 'Billing <billing@example.com>' },
    ...{ cert_file: '/etc/tls/cert.pem', key_file: '/etc/tls/key.pem' },
  }
  const lines = Object.entries(answers).map(([name, value]) => `${name}=${value}\n`)
  writeFileSync(machine.path('/root/answers'), lines.join(''), { mode: 0o600 })
}

/** Runs it, and throws where a step has a state that it must not have. */
export async function setUp(machine: Machine, unwanted: readonly string[]): Promise<void> {
  const { stdout, stderr } = await machine.try('billing-cli setup --answers answers --json')
  if (stdout === '') throw new Error(stderr)
  const { steps } = JSON.parse(stdout) as { steps: { name: string; status: string; detail: string }[] }
  const wrong = steps.filter(({ status }) => unwanted.includes(status))
  if (wrong.length === 0) return
  const log = await machine.try('journalctl -u billing-daemon -o cat --no-pager | tail -n 30')
  throw new Error(`${JSON.stringify(wrong, null, 2)}\n${log.stdout}`)
}
