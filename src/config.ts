import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { addressesOf } from '#shared/database-url.ts'
import { isLoopbackHost } from '#shared/loopback.ts'
import { messageOf } from '#shared/errors.ts'
import { parseKeyring } from '#shared/crypto.ts'
import { parseDkimKey } from '#shared/dkim-key.ts'
import { parseAmounts } from '#shared/money.ts'
import { parseDuration } from '#shared/time.ts'

/** The settings, checked: README lists the variable behind each (R280). */
export interface Config {
  readonly env: 'development' | 'production'
  /** `mysql://…`, with a host for each node of a cluster; null stands for the embedded database under `home`. */
  readonly databaseUrl: string | null
  readonly home: string
  readonly host: string
  /** 0 lets the system pick one. */
  readonly port: number
  /** Public base address without a trailing slash. */
  readonly baseUrl: string
  /** `id:base64,…`; null in development, where a key is generated under `home`. */
  readonly encryptionKeys: string | null
  readonly smtpUrl: string | null
  readonly mailFrom: string | null
  /** What mails are signed with; null without a key. */
  readonly dkim: {
    /** PEM. */
    readonly privateKey: string
    readonly selector: string
    /** That of `mailFrom`. */
    readonly domain: string
  } | null
  readonly relay: {
    readonly secret: string | null
    readonly authservIds: readonly string[]
    readonly trustedForwarders: readonly string[]
    readonly trustedArcSealers: readonly string[]
    /** `bank+{code}@pay.example.com` */
    readonly address: string | null
  }
  readonly webhook: {
    readonly timeoutMs: number
    readonly allowInsecure: boolean
    readonly retryMinutes: readonly number[]
  }
  readonly sweepSeconds: number
  /** How long a daemon that stops says that it is not ready, and still takes calls. */
  readonly drainSeconds: number
  readonly alerts: {
    /** Addresses that get alerts. */
    readonly mail: readonly string[]
    readonly webhook: { readonly url: string; readonly secret: string } | null
    /** When a digest goes out each day; null for never. */
    readonly digest: DailyTime | null
    /** How often the conditions are looked at. */
    readonly seconds: number
  }
  readonly stripeApiBase: string | null
  readonly payosApiBase: string | null
  readonly checkoutTtlSeconds: number
  /** 0 turns the limit off. */
  readonly rateLimitPerSecond: number
  /** Reminder mails of one live app in one UTC day; 0 turns the limit off. */
  readonly mailsPerAppPerDay: number
  /** Number of trusted reverse proxies in front. */
  readonly trustProxy: number
  readonly logLevel: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent'
  readonly metricsToken: string | null
  /** `host:port` of a database emulator; development only. */
  readonly firebaseDatabaseEmulatorHost: string | null
  /** What the refunds of one transaction may come to before a second operator is asked, by currency, in smallest units. */
  readonly refundLimit: ReadonlyMap<string, number>
  readonly backup: {
    readonly folder: string
    /** The public key of age (`age1…`) that backups are encrypted to; without one none is made. */
    readonly recipient: string | null
    /** The file with the private key that opens them. */
    readonly identityFile: string | null
    /** How long backups are kept; null keeps all. */
    readonly keepMs: number | null
  }
}

/** `08:00 Asia/Ho_Chi_Minh` */
export interface DailyTime {
  readonly hours: number
  readonly minutes: number
  readonly zone: string
}

type Environment = Readonly<Record<string, string | undefined>>

const DEFAULT_HOST = '127.0.0.1'
const DEFAULT_PORT = 8080
export const DEFAULT_DKIM_SELECTOR = 'paygate'
/** Minimum length, in production, of a secret that operators choose themselves. */
const MIN_SECRET_CHARACTERS = 16
/** Thirty days: as long as anybody waits for an event, and far from where dates end. */
const MAX_RETRY_MINUTES = 43_200

const flag = (fallback: boolean) =>
  z
    .enum(['0', '1'], 'must be 0 or 1')
    .optional()
    .transform((value) => (value === undefined ? fallback : value === '1'))
const whole = (fallback: number, min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, 'must be a whole number')
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be from ${min} to ${max}`)
    .optional()
    .transform((value) => value ?? fallback)
const seconds = (fallback: number) =>
  z
    .string()
    .regex(/^\d{1,5}(\.\d+)?$/, 'must be a number of seconds')
    .transform(Number)
    .refine((value) => value >= 0.05 && value <= 86_400, 'must be from 0.05 to 86400')
    .optional()
    .transform((value) => value ?? fallback)
const MAIL_ADDRESS = /^[^@\s,<>]+@[^@\s,<>]+$/
const list = z
  .string()
  .optional()
  .transform((value) =>
    (value ?? '')
      .split(',')
      .map((entry) => entry.trim().toLowerCase())
      .filter((entry) => entry !== ''),
  )
const address = (pattern: RegExp, rule: string) =>
  z
    .string()
    .refine((value) => pattern.test(value) && URL.canParse(value), rule)
    .optional()
    .transform((value) => value ?? null)
const text = z
  .string()
  .optional()
  .transform((value) => value ?? null)

const Settings = z.object({
  BILLING_ENV: z.enum(['development', 'production'], 'must be development or production').default('development'),
  BILLING_DATABASE_URL: z
    .string()
    .refine(
      (value) => addressesOf(value).every((one) => /^(mysql|mariadb):\/\/[^/]+\/[^/?]+/.test(one) && URL.canParse(one)),
      'must be mysql://user:password@host:port/database, of a cluster mysql://user:password@h1:port,h2:port,h3:port/database',
    )
    .optional()
    .transform((value) => value ?? null),
  BILLING_ALLOW_EMBEDDED_DB: flag(false),
  BILLING_HOME: z.string().default('./var'),
  BILLING_HOST: z
    .string()
    .regex(/^[0-9A-Za-z.:_-]+$/, 'must be a host name or an IP address')
    .default(DEFAULT_HOST),
  BILLING_PORT: whole(DEFAULT_PORT, 0, 65535),
  BILLING_BASE_URL: address(/^https?:\/\/[^?#]+$/, 'must be an http(s) address without query'),
  BILLING_ENCRYPTION_KEYS: text,
  BILLING_SMTP_URL: address(/^smtps?:\/\//, 'must be smtp://… or smtps://…'),
  BILLING_SMTP_ALLOW_PLAINTEXT: flag(false),
  BILLING_MAIL_FROM: text,
  BILLING_DKIM_KEY: text,
  BILLING_DKIM_SELECTOR: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i, 'must be a name such as paygate: letters, digits and hyphens')
    .default(DEFAULT_DKIM_SELECTOR),
  BILLING_MAILS_PER_APP_PER_DAY: whole(10_000, 0, 100_000_000),
  BILLING_RELAY_SECRET: text,
  BILLING_RELAY_AUTHSERV_IDS: list,
  BILLING_RELAY_TRUSTED_FORWARDERS: list,
  BILLING_RELAY_TRUSTED_ARC_SEALERS: list,
  BILLING_RELAY_ADDRESS: z
    .string()
    .regex(/^[^@\s]*\{code\}[^@\s]*@[^@\s]+$/, 'must be an address that holds {code}')
    .optional()
    .transform((value) => value ?? null),
  BILLING_WEBHOOK_TIMEOUT_MS: whole(10_000, 100, 120_000),
  BILLING_WEBHOOK_ALLOW_INSECURE: z.enum(['0', '1'], 'must be 0 or 1').optional(),
  BILLING_WEBHOOK_RETRY_MINUTES: z
    .string()
    .regex(/^\d+(\.\d+)?(,\d+(\.\d+)?)*$/, 'must be a comma list of minutes')
    .default('1,5,15,60,240')
    .transform((value) => value.split(',').map(Number))
    .refine((minutes) => minutes.every((gap) => gap <= MAX_RETRY_MINUTES), `must be at most ${MAX_RETRY_MINUTES} each`),
  BILLING_SWEEP_SECONDS: seconds(60),
  BILLING_DRAIN_SECONDS: whole(0, 0, 10),
  BILLING_ALERT_MAIL: list.refine((mails) => mails.every((mail) => MAIL_ADDRESS.test(mail)), 'must be mail addresses'),
  BILLING_ALERT_WEBHOOK_URL: address(/^https?:\/\//, 'must be an http(s) address'),
  BILLING_ALERT_WEBHOOK_SECRET: z
    .string()
    .regex(/^whsec_[A-Za-z0-9+/]{16,}={0,2}$/, 'must be whsec_ and base64')
    .optional()
    .transform((value) => value ?? null),
  BILLING_ALERT_DIGEST: z
    .string()
    .optional()
    .transform((value, context) => {
      const time = value === undefined ? null : parseDailyTime(value)
      if (time !== undefined) return time
      context.addIssue('must be a time with its zone, such as 08:00 Asia/Ho_Chi_Minh')
      return z.NEVER
    }),
  BILLING_ALERT_SECONDS: seconds(60),
  BILLING_STRIPE_API_BASE: address(/^https?:\/\/[^/]+\/?$/, 'must be an http(s) origin'),
  BILLING_PAYOS_API_BASE: address(/^https?:\/\//, 'must be an http(s) address'),
  BILLING_CHECKOUT_TTL_SECONDS: whole(3600, 1, 86_400),
  BILLING_RATE_LIMIT_PER_SECOND: whole(100, 0, 1_000_000),
  BILLING_TRUST_PROXY: whole(0, 0, 10),
  BILLING_LOG_LEVEL: z
    .enum(
      ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
      'must be fatal, error, warn, info, debug, trace or silent',
    )
    .default('info'),
  BILLING_METRICS_TOKEN: text,
  BILLING_REFUND_LIMIT: z
    .string()
    .optional()
    .transform((value, context) => {
      const limits = parseAmounts(value ?? '')
      if (limits) return limits
      context.addIssue('must be amounts with their currencies, such as 5000000:VND,200:USD')
      return z.NEVER
    }),
  BILLING_BACKUP_DIR: text,
  BILLING_BACKUP_RECIPIENT: z
    .string()
    .regex(/^age1[0-9a-z]+$/, 'must be a public key of age, age1…')
    .optional()
    .transform((value) => value ?? null),
  BILLING_BACKUP_IDENTITY: text,
  BILLING_BACKUP_KEEP: z
    .string()
    .refine((value) => parseDuration(value) !== null, 'must be a number with s, m, h, d or w, such as 14d')
    .optional()
    .transform((value) => (value === undefined ? null : parseDuration(value))),
  FIREBASE_DATABASE_EMULATOR_HOST: text,
  FIREBASE_AUTH_EMULATOR_HOST: text,
})
type Settings = z.infer<typeof Settings>
/** The variables that are set, as they are written. */
type Values = Readonly<Partial<Record<keyof Settings, string>>>

/** Every variable that is read; README and `.env.example` name them all. */
export const VARIABLES: readonly string[] = Object.keys(Settings.shape)

/** Settings are missing or invalid; `errors` has a sentence for each, so that one start reports all. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly errors: readonly string[]

  constructor(errors: readonly string[]) {
    super(`the configuration is wrong:\n${errors.map((error) => `  - ${error}`).join('\n')}`)
    this.errors = errors
  }
}

/**
 * Reads and checks the settings. A variable that is not set is read from the systemd credential of the same name
 * (`$CREDENTIALS_DIRECTORY/BILLING_DATABASE_URL`). Throws `ConfigError` with every error.
 */
export function loadConfig(environment: Environment = process.env): Config {
  const values = collect(environment)
  const result = Settings.safeParse(values)
  const errors = (result.error?.issues ?? []).map((issue) => `${issue.path.join('.')} ${issue.message}`)
  errors.push(...combinedErrors(values, environment))
  if (!result.success || errors.length > 0) throw new ConfigError(errors)
  return toConfig(result.data)
}

/** The environment of child processes and worker threads, with some variables set. */
export function childEnvironment(overrides: Record<string, string>): Record<string, string> {
  const inherited = Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return { ...Object.fromEntries(inherited), ...overrides }
}

function collect(environment: Environment): Values {
  const credentials = environment['CREDENTIALS_DIRECTORY']
  const values: Record<string, string> = {}
  for (const name of VARIABLES) {
    const value = environment[name] ?? (credentials && readCredential(join(credentials, name)))
    // An empty variable means an unset one, as in a unit file's `BILLING_SMTP_URL=`.
    if (value) values[name] = value
  }
  return values
}

function readCredential(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return undefined
  }
}

/** Checks beyond the form of a single variable. They run even where a form is wrong, so that one start reports everything. */
function combinedErrors(values: Values, environment: Environment): string[] {
  const errors: string[] = []
  const keys = values.BILLING_ENCRYPTION_KEYS
  if (keys !== undefined) {
    try {
      parseKeyring(keys)
    } catch (error) {
      errors.push(`BILLING_ENCRYPTION_KEYS ${messageOf(error)}`)
    }
  }
  errors.push(...dkimErrors(values))
  if (values.BILLING_SMTP_URL && !values.BILLING_MAIL_FROM) {
    errors.push('BILLING_MAIL_FROM must be set if BILLING_SMTP_URL is')
  }
  if ((values.BILLING_ALERT_WEBHOOK_URL === undefined) !== (values.BILLING_ALERT_WEBHOOK_SECRET === undefined)) {
    errors.push('BILLING_ALERT_WEBHOOK_URL and BILLING_ALERT_WEBHOOK_SECRET must be set together')
  }
  if (values.BILLING_ENV === 'production') errors.push(...productionErrors(values, environment))
  return errors
}

function dkimErrors({ BILLING_DKIM_KEY: key, BILLING_MAIL_FROM: from }: Values): string[] {
  if (key === undefined) return []
  const errors: string[] = []
  try {
    parseDkimKey(key)
  } catch (error) {
    errors.push(`BILLING_DKIM_KEY ${messageOf(error)}`)
  }
  if (domainOf(from ?? '') === '')
    errors.push('BILLING_MAIL_FROM must be an address with a domain if BILLING_DKIM_KEY is set')
  return errors
}

/** The domain of `billing@example.com` or `Billing <billing@example.com>`; empty where there is none. */
export function domainOf(mailbox: string): string {
  return (/@([^@<>\s]+)>?\s*$/.exec(mailbox)?.[1] ?? '').toLowerCase()
}

function productionErrors(values: Values, environment: Environment): string[] {
  const errors: string[] = []
  if (!values.BILLING_ENCRYPTION_KEYS) {
    errors.push('BILLING_ENCRYPTION_KEYS must be set in production: id:base64 of 32 random bytes')
  }
  if (!values.BILLING_DATABASE_URL && values.BILLING_ALLOW_EMBEDDED_DB !== '1') {
    errors.push(
      'BILLING_DATABASE_URL must be set in production (or BILLING_ALLOW_EMBEDDED_DB=1 for the embedded database)',
    )
  }
  const base = values.BILLING_BASE_URL
  const parsedBase = base === undefined ? null : URL.parse(base)
  if (parsedBase?.protocol === 'http:' && !isLoopbackHost(parsedBase.hostname)) {
    errors.push('BILLING_BASE_URL must be https: in production')
  }
  if (!base && !isLoopbackHost(values.BILLING_HOST ?? DEFAULT_HOST)) {
    errors.push('BILLING_BASE_URL must be set in production if BILLING_HOST is not loopback')
  }
  if (values.BILLING_ALERT_MAIL && !values.BILLING_SMTP_URL) {
    errors.push('BILLING_SMTP_URL must be set in production if BILLING_ALERT_MAIL is')
  }
  for (const name of ['BILLING_STRIPE_API_BASE', 'BILLING_PAYOS_API_BASE', 'BILLING_ALERT_WEBHOOK_URL'] as const) {
    const address = URL.parse(values[name] ?? '')
    if (address?.protocol === 'http:' && !isLoopbackHost(address.hostname))
      errors.push(`${name} must be https: in production`)
  }
  if (sendsPlaintext(values)) {
    errors.push(
      'BILLING_SMTP_URL must be smtps://… or end in ?requireTLS=true in production (or BILLING_SMTP_ALLOW_PLAINTEXT=1 for mails and password in plain text)',
    )
  }
  for (const name of ['BILLING_RELAY_SECRET', 'BILLING_METRICS_TOKEN'] as const) {
    const secret = values[name]
    if (secret !== undefined && secret.length < MIN_SECRET_CHARACTERS) {
      errors.push(`${name} must have at least ${MIN_SECRET_CHARACTERS} characters in production`)
    }
  }
  for (const name of ['FIREBASE_DATABASE_EMULATOR_HOST', 'FIREBASE_AUTH_EMULATOR_HOST']) {
    if (environment[name]) errors.push(`${name} must not be set in production`)
  }
  return errors
}

/** Whether an attacker on the way to the mail server could read mails and password by removing STARTTLS from its greeting. */
function sendsPlaintext(values: Values): boolean {
  const server = URL.parse(values.BILLING_SMTP_URL ?? '')
  if (server?.protocol !== 'smtp:' || isLoopbackHost(server.hostname)) return false
  const requires = server.searchParams.getAll('requireTLS')
  const isRequired = requires.length === 1 && requires[0] === 'true'
  return !isRequired && values.BILLING_SMTP_ALLOW_PLAINTEXT !== '1'
}

function toConfig(settings: Settings): Config {
  const { BILLING_ENV: env, BILLING_HOST: host, BILLING_PORT: port } = settings
  const insecure = settings.BILLING_WEBHOOK_ALLOW_INSECURE
  return {
    env,
    databaseUrl: settings.BILLING_DATABASE_URL,
    home: resolve(settings.BILLING_HOME),
    host,
    port,
    baseUrl: (settings.BILLING_BASE_URL ?? listenUrl(host, port)).replace(/(?<!\/)\/+$/, ''),
    encryptionKeys: settings.BILLING_ENCRYPTION_KEYS,
    smtpUrl: settings.BILLING_SMTP_URL,
    mailFrom: settings.BILLING_MAIL_FROM,
    dkim: dkimOf(settings),
    relay: {
      secret: settings.BILLING_RELAY_SECRET,
      authservIds: settings.BILLING_RELAY_AUTHSERV_IDS,
      trustedForwarders: settings.BILLING_RELAY_TRUSTED_FORWARDERS,
      trustedArcSealers: settings.BILLING_RELAY_TRUSTED_ARC_SEALERS,
      address: settings.BILLING_RELAY_ADDRESS,
    },
    webhook: {
      timeoutMs: settings.BILLING_WEBHOOK_TIMEOUT_MS,
      allowInsecure: insecure === undefined ? env === 'development' : insecure === '1',
      retryMinutes: settings.BILLING_WEBHOOK_RETRY_MINUTES,
    },
    sweepSeconds: settings.BILLING_SWEEP_SECONDS,
    drainSeconds: settings.BILLING_DRAIN_SECONDS,
    alerts: {
      mail: settings.BILLING_ALERT_MAIL,
      webhook: webhookOf(settings.BILLING_ALERT_WEBHOOK_URL, settings.BILLING_ALERT_WEBHOOK_SECRET),
      digest: settings.BILLING_ALERT_DIGEST,
      seconds: settings.BILLING_ALERT_SECONDS,
    },
    stripeApiBase: settings.BILLING_STRIPE_API_BASE,
    payosApiBase: settings.BILLING_PAYOS_API_BASE,
    checkoutTtlSeconds: settings.BILLING_CHECKOUT_TTL_SECONDS,
    rateLimitPerSecond: settings.BILLING_RATE_LIMIT_PER_SECOND,
    mailsPerAppPerDay: settings.BILLING_MAILS_PER_APP_PER_DAY,
    trustProxy: settings.BILLING_TRUST_PROXY,
    logLevel: settings.BILLING_LOG_LEVEL,
    metricsToken: settings.BILLING_METRICS_TOKEN,
    firebaseDatabaseEmulatorHost: env === 'development' ? settings.FIREBASE_DATABASE_EMULATOR_HOST : null,
    refundLimit: settings.BILLING_REFUND_LIMIT,
    backup: {
      folder: resolve(settings.BILLING_BACKUP_DIR ?? join(settings.BILLING_HOME, 'backups')),
      recipient: settings.BILLING_BACKUP_RECIPIENT,
      identityFile: settings.BILLING_BACKUP_IDENTITY,
      keepMs: settings.BILLING_BACKUP_KEEP,
    },
  }
}

function dkimOf({ BILLING_DKIM_KEY: key, BILLING_DKIM_SELECTOR: selector, ...settings }: Settings): Config['dkim'] {
  if (key === null) return null
  const privateKey = parseDkimKey(key).export({ type: 'pkcs8', format: 'pem' }).toString()
  return { privateKey, selector, domain: domainOf(settings.BILLING_MAIL_FROM ?? '') }
}

function webhookOf(url: string | null, secret: string | null): Config['alerts']['webhook'] {
  return url === null || secret === null ? null : { url, secret }
}

/** Undefined if the text is no time with a zone. */
function parseDailyTime(text: string): DailyTime | undefined {
  const [, hours = '', minutes = '', zone = ''] = /^([01]\d|2[0-3]):([0-5]\d) (\S+)$/.exec(text) ?? []
  return isTimeZone(zone) ? { hours: Number(hours), minutes: Number(minutes), zone } : undefined
}

function isTimeZone(zone: string): boolean {
  try {
    Intl.DateTimeFormat('en', { timeZone: zone })
    return zone !== ''
  } catch {
    return false
  }
}

/** `http://127.0.0.1:8080` for a listen address. */
export function listenUrl(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Whether the public base address was set, rather than taken from the listen address. */
export function hasBaseUrl(environment: Environment = process.env): boolean {
  return 'BILLING_BASE_URL' in collect(environment)
}

/** A service manager that this process reports to. `watchdogMs`: the longest pause between two pings that it accepts; null without a watchdog. */
export interface ServiceManager {
  readonly watchdogMs: number | null
}

/** The systemd that started this process as a service of type notify; null if none did. */
export function serviceManager(
  environment: Environment = process.env,
  pid: number = process.pid,
): ServiceManager | null {
  if (!environment['NOTIFY_SOCKET']) return null
  const { WATCHDOG_PID: watchedPid, WATCHDOG_USEC: microseconds = '' } = environment
  // The watchdog may belong to another process.
  const isOurs = watchedPid === undefined || watchedPid === String(pid)
  return { watchdogMs: isOurs && /^[1-9]\d*$/.test(microseconds) ? Number(microseconds) / 1000 : null }
}

/** The form of account names; sudo sets nothing else. */
const ACCOUNT_NAME = /^[\p{L}\p{N}_.@+\\$-]{1,128}$/u

/**
 * Who runs a command, for the audit log: the login name or, under sudo, the name of its caller, marked as such. A process that is not
 * root may have set SUDO_USER itself, so only root's is used (R263).
 */
export function operatorName(
  loginName: string,
  environment: Environment = process.env,
  uid: number | undefined = process.getuid?.(),
): string {
  const { SUDO_USER: caller = '' } = environment
  return uid === 0 && ACCOUNT_NAME.test(caller) ? `${caller} (sudo)` : loginName
}

/** The command line that an operator's ssh asked for; null where it asked for a session. */
export function sshCommand(environment: Environment = process.env): string | null {
  return environment['SSH_ORIGINAL_COMMAND'] || null
}

/** Whether the terminal can do nothing but print (`TERM=dumb`, or no `TERM` at all). */
export function isDumbTerminal(environment: Environment = process.env): boolean {
  return (environment['TERM'] || 'dumb') === 'dumb'
}

/** A secret that a command of the CLI reads from its environment, so that none is an argument. */
export function cliSecret(variable: string, environment: Environment = process.env): string | undefined {
  return environment[variable]
}

/** The program that opens a page in a browser; null if the session has no desktop. */
export function desktopOpener(
  environment: Environment = process.env,
  platform: NodeJS.Platform = process.platform,
): 'open' | 'xdg-open' | null {
  if (environment['SSH_CONNECTION']) return null
  if (platform === 'darwin') return 'open'
  return environment['DISPLAY'] || environment['WAYLAND_DISPLAY'] ? 'xdg-open' : null
}
