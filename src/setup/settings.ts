import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { loadConfig, type Config } from '#config/config.ts'
import { DEFAULT_DKIM_SELECTOR } from '#config/settings.ts'
import { newDkimKey, parseDkimKey } from '#shared/dkim-key.ts'
import type { Answers } from './answers.ts'
import { isInstalled, readInstalled, writeInstalled, type InstalledFile } from './files.ts'
import { pending, unchanged, type PartState } from './step.ts'
import { CREDENTIALS_FOLDER, ENVIRONMENT_FILE, SAMPLE_ENVIRONMENT } from './systemd-unit.ts'

/** The folder of the service's data, which its unit names, too. */
export function homeOf(prefix: string): string {
  return join(prefix, '/var/lib/paygate')
}

/** The settings as the service reads them, from the files below the prefix and nothing else. Throws `ConfigError`. */
export function installedConfig(prefix: string): Config {
  const lines = linesOf(readInstalled(prefix, ENVIRONMENT_FILE) ?? '')
  const settings = { ...Object.fromEntries(lines), CREDENTIALS_DIRECTORY: join(prefix, CREDENTIALS_FOLDER) }
  return { ...loadConfig(settings), logLevel: 'silent' }
}

/** The settings that are not secret, and the addresses that contain passwords. */
export function inspectSettings(prefix: string, answers: Answers): PartState {
  const before = readInstalled(prefix, ENVIRONMENT_FILE)
  const required = requiredLines(prefix, answers, new Map(linesOf(before ?? '')))
  const content = withLines(before ?? SAMPLE_ENVIRONMENT, required)
  const files = [
    { path: ENVIRONMENT_FILE, content, mode: 0o644 },
    secretFile('BILLING_SMTP_URL', answers.smtpUrl),
    ...(answers.databaseUrl === null ? [] : [secretFile('BILLING_DATABASE_URL', answers.databaseUrl)]),
  ].filter((file) => !isInstalled(prefix, file))
  const isLeftOver = answers.databaseUrl === null && readCredential(prefix, 'BILLING_DATABASE_URL') !== null
  if (files.length === 0 && !isLeftOver) return unchanged(`${ENVIRONMENT_FILE}, and the addresses with passwords`)
  const changes = [...files.map(({ path }) => `write ${path}`), ...(isLeftOver ? [REMOVE] : [])]
  return pending(changes.join(', '), () => {
    for (const file of files) writeInstalled(prefix, file)
    if (isLeftOver) rmSync(join(prefix, CREDENTIALS_FOLDER, 'BILLING_DATABASE_URL'))
    return `changed: ${changes.join(', ')}`
  })
}

const REMOVE = 'remove BILLING_DATABASE_URL'

/** The value of each setting; null if its line must be absent. */
function requiredLines(
  prefix: string,
  { baseUrl, mailFrom, databaseUrl, proxy, relay }: Answers,
  present: ReadonlyMap<string, string>,
): ReadonlyMap<string, string | null> {
  const hops = present.get('BILLING_TRUST_PROXY') ?? '0'
  const isProxied = proxy !== 'none' || baseUrl.protocol === 'https:'
  return new Map<string, string | null>([
    ['BILLING_ENV', 'production'],
    ['BILLING_HOME', homeOf(prefix)],
    ['BILLING_BASE_URL', baseUrl.href.replace(/\/$/, '')],
    ['BILLING_TRUST_PROXY', isProxied && hops === '0' ? '1' : hops],
    ['BILLING_MAIL_FROM', mailFrom],
    ['BILLING_ALLOW_EMBEDDED_DB', databaseUrl === null ? '1' : null],
    ...Object.entries(relay ?? {}),
  ])
}

/** The text with these lines in place of older ones, or at its end. All other lines stay, including comments. */
function withLines(text: string, required: ReadonlyMap<string, string | null>): string {
  const left = new Map(required)
  const kept = text
    .trimEnd()
    .split('\n')
    .flatMap((line) => {
      const name = /^([A-Z_]+)=/.exec(line)?.[1] ?? ''
      if (!required.has(name)) return [line]
      const value = left.get(name) ?? null
      left.delete(name)
      return value === null ? [] : [lineOf(name, value)]
    })
  const added = [...left].flatMap(([name, value]) => (value === null ? [] : [lineOf(name, value)]))
  return `${[...kept, ...added].join('\n')}\n`
}

/** systemd interprets backslashes and a leading quotation mark, so a value that has them is quoted. */
function lineOf(name: string, value: string): string {
  return `${name}=${/^["']|\\/.test(value) ? `"${value.replace(/["\\]/g, '\\$&')}"` : value}`
}

/** Reads lines as systemd and the installed billing-cli do: without the quotation marks around a value and the backslashes before characters. */
function linesOf(text: string): [string, string][] {
  return [...text.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name = '', written = '']) => [
    name,
    (/^(["'])(.*)\1$/.exec(written)?.[2] ?? written).replace(/\\(.)/g, '$1'),
  ])
}

/** Secrets that are made once and kept. */
export function inspectKeys(prefix: string, answers: Answers): PartState {
  const makers: Readonly<Record<string, () => string>> = {
    BILLING_ENCRYPTION_KEYS: () => `k1:${randomBytes(32).toString('base64')}`,
    BILLING_METRICS_TOKEN: () => randomBytes(32).toString('hex'),
    ...(answers.relay && { BILLING_RELAY_SECRET: () => randomBytes(32).toString('hex') }),
  }
  return inspectSecrets(prefix, makers)
}

/** The key that mails are signed with. */
export function inspectDkim(prefix: string): PartState {
  return inspectSecrets(prefix, { BILLING_DKIM_KEY: () => newDkimKey().trim() })
}

function inspectSecrets(prefix: string, makers: Readonly<Record<string, () => string>>): PartState {
  const names = Object.keys(makers).join(', ')
  const missing = Object.entries(makers).filter(([name]) => readCredential(prefix, name) === null)
  if (missing.length === 0) return unchanged(`${names} in ${CREDENTIALS_FOLDER}`)
  const list = missing.map(([name]) => name).join(', ')
  return pending(`make ${list} in ${CREDENTIALS_FOLDER}`, () => {
    for (const [name, make] of missing) writeInstalled(prefix, secretFile(name, make()))
    return `made ${list} in ${CREDENTIALS_FOLDER}: keep a copy elsewhere`
  })
}

/** The DKIM key; null before it is made. */
export function installedDkim(prefix: string): ReturnType<typeof parseDkimKey> | null {
  const text = readCredential(prefix, 'BILLING_DKIM_KEY')
  return text === null ? null : parseDkimKey(text)
}

export function installedSelector(prefix: string): string {
  const lines = new Map(linesOf(readInstalled(prefix, ENVIRONMENT_FILE) ?? ''))
  return lines.get('BILLING_DKIM_SELECTOR') || DEFAULT_DKIM_SELECTOR
}

function readCredential(prefix: string, name: string): string | null {
  return readInstalled(prefix, join(CREDENTIALS_FOLDER, name))?.trim() || null
}

function secretFile(name: string, value: string): InstalledFile {
  return { path: join(CREDENTIALS_FOLDER, name), content: `${value}\n`, mode: 0o600 }
}
