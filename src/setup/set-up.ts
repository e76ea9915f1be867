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
import { AppError } from '#shared/errors.ts'
import { openLog } from '#shared/log.ts'
import { systemClock } from '#shared/time.ts'
import type { Answers } from './answers.ts'
import { inspectDatabase, inspectSchema } from './database.ts'
import { countPublished, dnsRecords, needsPublicAddress, type DnsRecord } from './dns-records.ts'
import { isInstalled, writeInstalled, type InstalledFile } from './files.ts'
import { SetupMemory } from './memory.ts'
import { inspectCertificate, inspectProxyFile, inspectProxyService, missingPackages } from './proxy.ts'
import { hasProgram, isUnitActive, runProgram } from './run-program.ts'
import {
  inspectDkim,
  inspectKeys,
  inspectSettings,
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
  hiddenMessage,
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
  readonly #memory: SetupMemory
  #opened: Promise<OpenContext> | null = null

  constructor(answers: Answers, options: SetUpOptions, hasSystemd: boolean) {
    this.#answers = answers
    this.#options = options
    this.#hasSystemd = hasSystemd
    this.#memory = new SetupMemory(options.prefix)
  }

  parts(): Part[] {
    const { firstApp, proxy, testMailTo } = this.#answers
    return [
      { name: 'packages', does: 'install packages', inspect: () => this.#inspectPackages() },
      ...this.#fileParts(),
      ...this.#serviceParts(),
      ...(proxy === 'none' ? [] : this.#proxyParts()),
      ...(firstApp === null ? [] : [this.#appPart(firstApp)]),
      { name: 'dns', does: 'print DNS records', needs: ['settings', 'dkim'], inspect: () => this.#inspectDns() },
      {
        name: 'test_mail',
        does: `send a mail to ${testMailTo}`,
        needs: ['settings', 'keys', 'dkim'],
        inspect: () => this.#inspectTestMail(),
      },
      { name: 'doctor', does: 'run doctor', needs: ['schema'], inspect: () => this.#inspectDoctor() },
    ]
  }

  #fileParts(): Part[] {
    const { prefix } = this.#options
    const forService = (look: () => PartState) => () => this.#memory.writing('service', look())
    return [
      { name: 'settings', does: 'write settings', inspect: forService(() => inspectSettings(prefix, this.#answers)) },
      { name: 'keys', does: 'make keys', inspect: forService(() => inspectKeys(prefix, this.#answers)) },
      { name: 'dkim', does: 'make a key for mails', inspect: forService(() => inspectDkim(prefix)) },
      { name: 'program', does: 'write billing-cli', inspect: () => this.#inspectProgram() },
      {
        name: 'unit',
        does: `write the unit ${UNIT}`,
        needs: ['settings', 'keys', 'dkim'],
        inspect: forService(() => this.#inspectUnit()),
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
      inspect: () => inspectDatabase(this.#answers, own),
    }
    const schema = (needs: readonly string[]): Part => ({
      name: 'schema',
      does: 'make the tables',
      needs,
      inspect: async () => inspectSchema(await this.#ctx()),
    })
    const service = (needs: readonly string[]): Part => ({
      name: 'service',
      does: `start ${UNIT}`,
      needs,
      needsSystemd: true,
      inspect: async () => this.#memory.loading('service', await this.#inspectService()),
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

  #inspectPackages(): PartState {
    const missing = missingPackages(this.#answers)
    if (missing.length === 0) return unchanged('every required program is installed')
    if (!this.#hasSystemd || !hasProgram('apt-get'))
      return skipped(`would install ${missing.join(', ')}: apt-get install ${missing.join(' ')}`)
    return pending(`install ${missing.join(', ')}`, async () => {
      await runProgram('apt-get', ['update', '--quiet'])
      await runProgram('apt-get', ['install', '--yes', '--no-install-recommends', ...missing])
      return `installed ${missing.join(', ')}`
    })
  }

  #inspectProgram(): PartState {
    if (isOfPackage(ROOT)) return unchanged(`${PACKAGE_CLI_FILE}, of the package`)
    return this.#inspectFiles([{ path: CLI_FILE, content: renderCli(this.#paths()), mode: 0o755 }])
  }

  #inspectUnit(): PartState {
    const { prefix } = this.#options
    if (isOfPackage(ROOT))
      return this.#inspectFiles([{ path: CREDENTIALS_UNIT_FILE, content: renderCredentials(prefix), mode: 0o644 }])
    if (isHidden(ROOT) && this.#hasSystemd) throw new AppError('invalid_request', hiddenMessage(ROOT))
    const units = renderUnits(this.#paths())
    return this.#inspectFiles(
      units.map(({ name, content }) => ({ path: `${UNIT_FOLDER}/${name}`, content, mode: 0o644 })),
    )
  }

  #paths() {
    return { root: ROOT, prefix: this.#options.prefix }
  }

  #inspectFiles(files: readonly InstalledFile[]): PartState {
    const { prefix } = this.#options
    const listed = (some: readonly InstalledFile[]) => some.map(({ path }) => path).join(', ')
    const others = files.filter((file) => !isInstalled(prefix, file))
    if (others.length === 0) return unchanged(listed(files))
    return pending(`write ${listed(others)}`, () => {
      for (const file of others) writeInstalled(prefix, file)
      return `wrote ${listed(others)}`
    })
  }

  async #inspectService(): Promise<PartState> {
    if ((await isUnitActive(UNIT)) && !this.#memory.mustLoad('service')) return unchanged(`${UNIT} runs`)
    const timers = renderUnits(this.#paths())
      .map(({ name }) => name)
      .filter((name) => name.endsWith('.timer'))
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
    const inspect = () =>
      this.#memory.writing('proxy_service', inspectProxyFile(this.#options.prefix, this.#answers, this.#config()))
    const inspectService = async () =>
      inspectProxyService(this.#answers, { isFileNew: this.#memory.mustLoad('proxy_service') })
    const byCertbot: Part = {
      name: 'certificate',
      does: 'get a certificate by certbot',
      needs: ['packages'],
      needsSystemd: true,
      inspect: () => inspectCertificate(this.#answers),
    }
    return [
      ...(proxy === 'nginx' && !certificate ? [byCertbot] : []),
      { name: 'proxy', does: `write the configuration of ${proxy}`, needs: ['settings'], inspect },
      {
        name: 'proxy_service',
        does: `start ${proxy}`,
        needs: ['packages', 'certificate', 'proxy'],
        needsSystemd: true,
        inspect: async () => this.#memory.loading('proxy_service', await inspectService()),
      },
    ]
  }

  #appPart(name: string): Part {
    return {
      name: 'first_app',
      does: `create the app ${name}`,
      needs: ['schema'],
      inspect: () => this.#inspectApp(name),
    }
  }

  async #inspectApp(name: string): Promise<PartState> {
    const ctx = await this.#ctx()
    const present = (await listApps(ctx.db)).find((app) => app.name === name && app.auth === 'hmac')
    if (present) return unchanged(`app ${present.id}, api_key ${present.apiKey}`)
    return pending(`create the app ${name}`, async () => {
      const made = await perform(ctx, this.#options.caller, createApp, { name, auth: 'hmac' }, {})
      return `app ${made.app_id}, api_key ${made.api_key}, api_secret ${made.api_secret ?? ''}: keep the secret now, it is not shown again`
    })
  }

  async #inspectDns(): Promise<PartState> {
    const records = this.dns()
    const published = await countPublished(records)
    const hint = needsPublicAddress(records) ? '; the address here is a private one: publish the public one' : ''
    const detail = `${published} of ${counted(records.length, 'record')} found in DNS${hint}`
    return this.#memory.once('dns', records, 'print the records to publish', () => detail, detail)
  }

  #inspectTestMail(): PartState {
    const { smtpUrl, testMailTo: to } = this.#answers
    const config = this.#config()
    const inputs = [smtpUrl, config.mailFrom, config.dkim?.selector, config.dkim?.privateKey, to]
    const send = async () => {
      await sendTestMail({ config, clock: systemClock, log: openLog('silent') }, to)
      return `the mail server accepted a mail to ${to}`
    }
    return this.#memory.once('test_mail', inputs, `send a mail to ${to}`, send, `a mail to ${to} was accepted earlier`)
  }

  async #inspectDoctor(): Promise<PartState> {
    const { explain, onProgress } = this.#options
    const results = await examine(await this.#ctx(), {
      ...(explain && { explain }),
      ...(onProgress && { onProgress: (check) => onProgress(`doctor: ${check}`) }),
    })
    const failures = results.filter(({ ok }) => !ok)
    if (failures.length > 0) throw new Error(failures.map(({ check, detail }) => `${check}: ${detail}`).join('; '))
    const warnings = results.filter(({ fix }) => fix !== null).map(({ check }) => check)
    const detail = `${results.length} checks passed${warnings.length > 0 ? `, with warnings: ${warnings.join(', ')}` : ''}`
    return this.#memory.once('doctor', 'passed', 'run doctor', () => detail, detail)
  }
}
