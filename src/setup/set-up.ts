import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createApp } from '#apps/create-app.ts'
import { listApps } from '#apps/store.ts'
import type { Caller } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import type { Config } from '#config/config.ts'
import { examine } from '#doctor/doctor.ts'
import { sendTestMail } from '#mails/send-test-mail.ts'
import { openContext, type OpenContext } from '#open-context.ts'
import { counted } from '#shared/counted.ts'
import { sha256Hex } from '#shared/crypto.ts'
import { AppError } from '#shared/errors.ts'
import { openLog } from '#shared/log.ts'
import { systemClock } from '#shared/time.ts'
import type { Answers } from './answers.ts'
import { findDatabase, findSchema } from './database.ts'
import { countPublished, dnsRecords, needsPublicAddress, type DnsRecord } from './dns-records.ts'
import { isInstalled, readInstalled, writeInstalled, type InstalledFile } from './files.ts'
import { findCertificate, findProxyFile, findProxyService, missingPackages } from './proxy.ts'
import { hasProgram, runProgram } from './run-program.ts'
import {
  findDkim,
  findKeys,
  findSettings,
  homeOf,
  installedConfig,
  installedDkim,
  installedSelector,
} from './settings.ts'
import {
  pending,
  runParts,
  skipped,
  unchanged,
  type PartState,
  type Part,
  type RunOptions,
  type SetupStep,
} from './step.ts'
import {
  CLI_FILE,
  CREDENTIALS_UNIT_FILE,
  HIDDEN,
  isHidden,
  isOfPackage,
  PACKAGE_CLI_FILE,
  renderCli,
  renderCredentials,
  SERVICE_USER,
  UNIT_FOLDER,
} from './systemd-unit.ts'
import { renderUnits } from './units.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const UNIT = 'billing-daemon'
/** A line for systemd-sysusers, which keeps an existing user. */
const USER_LINE = `u ${SERVICE_USER} - "Paygate" /var/lib/paygate`
/** What earlier runs did without leaving another trace, with a hash of its inputs; and whether the services loaded what was written. */
const MEMORY_FILE = '/etc/paygate/setup.json'
const [WRITTEN, LOADED] = ['written', 'loaded']
/** The steps in which a service loads what was written for it. */
type Loading = 'service' | 'proxy_service'

export interface SetUpOptions extends Pick<RunOptions, 'isCheck' | 'explain' | 'onProgress'> {
  /** Prepended to every path that is written; empty except in trials. */
  readonly prefix: string
  readonly caller: Caller
  /** Whether systemd runs here, if tests decide it. */
  readonly hasSystemd?: boolean
}

export interface SetUpReport {
  readonly steps: readonly SetupStep[]
  readonly dns: readonly DnsRecord[]
}

/** Makes an installation according to the answers or, with `isCheck`, reports what differs. Changes only what differs (R431). */
export async function setUp(answers: Answers, options: SetUpOptions): Promise<SetUpReport> {
  // A system that systemd started has this folder (sd_booted).
  const { hasSystemd = options.prefix === '' && existsSync('/run/systemd/system') } = options
  const work = new Installation(answers, options, hasSystemd)
  try {
    const steps = await runParts(work.parts(), { ...options, hasSystemd })
    return { steps, dns: work.dns() }
  } finally {
    await work.close()
  }
}

class Installation {
  readonly #answers: Answers
  readonly #options: SetUpOptions
  readonly #hasSystemd: boolean
  #opened: Promise<OpenContext> | null = null

  constructor(answers: Answers, options: SetUpOptions, hasSystemd: boolean) {
    this.#answers = answers
    this.#options = options
    this.#hasSystemd = hasSystemd
  }

  parts(): Part[] {
    const { firstApp, proxy, testMailTo } = this.#answers
    return [
      { name: 'packages', does: 'install packages', find: () => this.#findPackages() },
      ...this.#fileParts(),
      ...this.#serviceParts(),
      ...(proxy === 'none' ? [] : this.#proxyParts()),
      ...(firstApp === null ? [] : [this.#appPart(firstApp)]),
      { name: 'dns', does: 'print DNS records', needs: ['settings', 'dkim'], find: () => this.#findDns() },
      {
        name: 'test_mail',
        does: `send a mail to ${testMailTo}`,
        needs: ['settings', 'keys', 'dkim'],
        find: () => this.#findTestMail(),
      },
      { name: 'doctor', does: 'run doctor', needs: ['schema'], find: () => this.#findDoctor() },
    ]
  }

  #fileParts(): Part[] {
    const { prefix } = this.#options
    const find = (look: () => PartState) => () => this.#writing('service', look())
    return [
      { name: 'settings', does: 'write settings', find: find(() => findSettings(prefix, this.#answers)) },
      { name: 'keys', does: 'make keys', find: find(() => findKeys(prefix, this.#answers)) },
      { name: 'dkim', does: 'make a key for mails', find: find(() => findDkim(prefix)) },
      { name: 'program', does: 'write billing-cli', find: () => this.#findProgram() },
      {
        name: 'unit',
        does: `write the unit ${UNIT}`,
        needs: ['settings', 'keys', 'dkim'],
        find: find(() => this.#findUnit()),
      },
    ]
  }

  /**
   * Paygate's own database server belongs to the service's user, which systemd makes with the service, so in that case the service starts
   * first.
   */
  #serviceParts(): Part[] {
    const isOwn = this.#answers.databaseUrl === null
    const own = { home: homeOf(this.#options.prefix), make: this.#hasSystemd ? null : () => this.#ctx() }
    const database: Part = {
      name: 'database',
      does: 'make it',
      needs: isOwn ? ['settings', 'keys'] : [],
      find: () => findDatabase(this.#answers, own),
    }
    const schema = (needs: readonly string[]): Part => ({
      name: 'schema',
      does: 'make the tables',
      needs,
      find: async () => findSchema(await this.#ctx()),
    })
    const service = (needs: readonly string[]): Part => ({
      name: 'service',
      does: `start ${UNIT}`,
      needs,
      needsSystemd: true,
      find: async () => this.#loading('service', await this.#findService()),
    })
    return isOwn && this.#hasSystemd
      ? [database, service(['packages', 'unit', 'database']), schema(['service'])]
      : [database, schema(['settings', 'keys', 'database']), service(['unit', 'schema'])]
  }

  dns(): DnsRecord[] {
    const key = installedDkim(this.#options.prefix)
    return dnsRecords(this.#answers, key && { key, selector: installedSelector(this.#options.prefix) })
  }

  async close(): Promise<void> {
    await (await this.#opened?.catch(() => null))?.close()
  }

  #config(): Config {
    return installedConfig(this.#options.prefix)
  }

  async #ctx(): Promise<OpenContext['ctx']> {
    this.#opened ??= openContext({ config: this.#config(), thread: 'cli', poolSize: 4 })
    return (await this.#opened).ctx
  }

  /** Remembers that a service must load what is written, also if this run fails before it does. */
  #writing(loading: Loading, state: PartState): PartState {
    if (state.is !== 'pending') return state
    return pending(state.would, () => {
      this.#remember(loading, WRITTEN)
      return state.act()
    })
  }

  #loading(name: Loading, state: PartState): PartState {
    if (state.is !== 'pending') return state
    return pending(state.would, async () => {
      const detail = await state.act()
      this.#remember(name, LOADED)
      return detail
    })
  }

  #findPackages(): PartState {
    const missing = missingPackages(this.#answers)
    if (missing.length === 0) return unchanged('every required program is installed')
    const words = ['install', '--yes', '--no-install-recommends', ...missing]
    if (!this.#hasSystemd || !hasProgram('apt-get'))
      return skipped(`would install ${missing.join(', ')}: apt-get install ${missing.join(' ')}`)
    return pending(`install ${missing.join(', ')}`, async () => {
      await runProgram('apt-get', ['update', '--quiet'])
      await runProgram('apt-get', words)
      return `installed ${missing.join(', ')}`
    })
  }

  #findProgram(): PartState {
    if (isOfPackage(ROOT)) return unchanged(`${PACKAGE_CLI_FILE}, of the package`)
    return this.#findFiles([{ path: CLI_FILE, content: renderCli(this.#paths()), mode: 0o755 }])
  }

  #findUnit(): PartState {
    const { prefix } = this.#options
    if (isOfPackage(ROOT))
      return this.#findFiles([{ path: CREDENTIALS_UNIT_FILE, content: renderCredentials(prefix), mode: 0o644 }])
    if (isHidden(ROOT) && this.#hasSystemd) throw new AppError('invalid_request', HIDDEN(ROOT))
    const units = renderUnits(this.#paths())
    return this.#findFiles(units.map(({ name, content }) => ({ path: `${UNIT_FOLDER}/${name}`, content, mode: 0o644 })))
  }

  #paths() {
    return { root: ROOT, prefix: this.#options.prefix }
  }

  #findFiles(files: readonly InstalledFile[]): PartState {
    const { prefix } = this.#options
    const listed = (some: readonly InstalledFile[]) => some.map(({ path }) => path).join(', ')
    const others = files.filter((file) => !isInstalled(prefix, file))
    if (others.length === 0) return unchanged(listed(files))
    return pending(`write ${listed(others)}`, () => {
      for (const file of others) writeInstalled(prefix, file)
      return `wrote ${listed(others)}`
    })
  }

  async #findService(): Promise<PartState> {
    const isActive = (await runProgram('systemctl', ['show', '-P', 'ActiveState', UNIT])).trim() === 'active'
    if (isActive && this.#memory()['service'] !== WRITTEN) return unchanged(`${UNIT} runs`)
    const timers = renderUnits(this.#paths()).flatMap(({ name }) => (name.endsWith('.timer') ? [name] : []))
    return pending(`start ${UNIT}`, async () => {
      if (this.#answers.databaseUrl === null) await runProgram('systemd-sysusers', ['--inline', USER_LINE])
      await runProgram('systemctl', ['daemon-reload'])
      await runProgram('systemctl', ['enable', UNIT])
      if (timers.length > 0) await runProgram('systemctl', ['enable', '--now', ...timers])
      await runProgram('systemctl', ['restart', UNIT])
      return `${UNIT} runs, and starts with the machine`
    })
  }

  #proxyParts(): Part[] {
    const { proxy, certificate } = this.#answers
    const find = () =>
      this.#writing('proxy_service', findProxyFile(this.#options.prefix, this.#answers, this.#config()))
    const findService = async () => findProxyService(this.#answers, this.#memory()['proxy_service'] === WRITTEN)
    const byCertbot: Part = {
      name: 'certificate',
      does: 'get a certificate by certbot',
      needs: ['packages'],
      needsSystemd: true,
      find: () => findCertificate(this.#answers),
    }
    return [
      ...(proxy === 'nginx' && !certificate ? [byCertbot] : []),
      { name: 'proxy', does: `write the configuration of ${proxy}`, needs: ['settings'], find },
      {
        name: 'proxy_service',
        does: `start ${proxy}`,
        needs: ['packages', 'certificate', 'proxy'],
        needsSystemd: true,
        find: async () => this.#loading('proxy_service', await findService()),
      },
    ]
  }

  #appPart(name: string): Part {
    return { name: 'first_app', does: `create the app ${name}`, needs: ['schema'], find: () => this.#findApp(name) }
  }

  async #findApp(name: string): Promise<PartState> {
    const ctx = await this.#ctx()
    const present = (await listApps(ctx.db)).find((app) => app.name === name && app.auth === 'hmac')
    if (present) return unchanged(`app ${present.id}, api_key ${present.apiKey}`)
    return pending(`create the app ${name}`, async () => {
      const made = await perform(ctx, this.#options.caller, createApp, { name, auth: 'hmac' }, {})
      return `app ${made.app_id}, api_key ${made.api_key}, api_secret ${made.api_secret ?? ''}: keep the secret now, it is not shown again`
    })
  }

  async #findDns(): Promise<PartState> {
    const records = this.dns()
    const published = await countPublished(records)
    const hint = needsPublicAddress(records) ? '; the address here is a private one: publish the public one' : ''
    const detail = `${published} of ${counted(records.length, 'record')} found in DNS${hint}`
    return this.#once('dns', records, 'print the records to publish', () => detail, detail)
  }

  #findTestMail(): PartState {
    const { smtpUrl, testMailTo: to } = this.#answers
    const config = this.#config()
    const made = [smtpUrl, config.mailFrom, config.dkim?.selector, config.dkim?.privateKey, to]
    const send = async () => {
      await sendTestMail({ config, clock: systemClock, log: openLog('silent') }, to)
      return `the mail server accepted a mail to ${to}`
    }
    return this.#once('test_mail', made, `send a mail to ${to}`, send, `a mail to ${to} was accepted earlier`)
  }

  async #findDoctor(): Promise<PartState> {
    const { explain, onProgress } = this.#options
    const results = await examine(await this.#ctx(), {
      ...(explain && { explain }),
      ...(onProgress && { onProgress: (check) => onProgress(`doctor: ${check}`) }),
    })
    const failures = results.filter(({ ok }) => !ok)
    if (failures.length > 0) throw new Error(failures.map(({ check, detail }) => `${check}: ${detail}`).join('; '))
    const warnings = results.filter(({ fix }) => fix !== null).map(({ check }) => check)
    const detail = `${results.length} checks passed${warnings.length > 0 ? `, with warnings: ${warnings.join(', ')}` : ''}`
    return this.#once('doctor', 'passed', 'run doctor', () => detail, detail)
  }

  /** Skips work that an earlier run did with the same inputs. */
  #once(name: string, made: unknown, would: string, act: () => Promise<string> | string, before: string): PartState {
    const now = sha256Hex(JSON.stringify(made))
    if (this.#memory()[name] === now) return unchanged(before)
    return pending(would, async () => {
      const detail = await act()
      this.#remember(name, now)
      return detail
    })
  }

  #memory(): Record<string, string> {
    return JSON.parse(readInstalled(this.#options.prefix, MEMORY_FILE) ?? '{}') as Record<string, string>
  }

  #remember(name: string, value: string): void {
    const content = `${JSON.stringify({ ...this.#memory(), [name]: value }, null, 2)}\n`
    writeInstalled(this.#options.prefix, { path: MEMORY_FILE, content, mode: 0o600 })
  }
}
