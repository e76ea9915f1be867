import { readFileSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseDkimKey } from '#shared/dkim-key.ts'
import { combinedErrors } from './combined-errors.ts'
import type { Environment } from './environment.ts'
import { Settings, VARIABLES, domainOf, type DailyTime, type Values } from './settings.ts'

/** The settings, checked: README lists the variable behind each (R280). */
export interface Config {
  readonly env: 'development' | 'production'
  /** `mysql://…`, with a host for each node of a cluster; null for the embedded database under `home`. */
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
  /** The total refunds of one transaction above which a second operator is asked, by currency, in smallest units. */
  readonly refundLimit: ReadonlyMap<string, number>
  readonly backup: {
    readonly folder: string
    /** The public key of age (`age1…`) that backups are encrypted to; without it no backup is made. */
    readonly recipient: string | null
    /** The file with the private key that opens them. */
    readonly identityFile: string | null
    /** How long backups are kept; null keeps all. */
    readonly keepMs: number | null
  }
}

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

/** Whether the public base address was set, rather than taken from the listen address. */
export function hasBaseUrl(): boolean {
  return 'BILLING_BASE_URL' in collect(process.env)
}

/** Secrets that commands read from their environment. */
const OF_COMMANDS = 'BILLING_CLI_'

/** The variables and credentials `BILLING_…` that no setting reads: their names may be misspelt. */
export function unknownVariables(environment: Environment = process.env): string[] {
  const credentials = environment['CREDENTIALS_DIRECTORY']
  const names = [...Object.keys(environment), ...(credentials ? readNames(credentials) : [])]
  return [...new Set(names)].filter(
    (name) => name.startsWith('BILLING_') && !name.startsWith(OF_COMMANDS) && !VARIABLES.includes(name),
  )
}

function readNames(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
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

/** `http://127.0.0.1:8080` for a listen address. */
export function listenUrl(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
