import { z } from 'zod'
import { addressesOf } from '#shared/database-url.ts'
import { parseAmounts } from '#shared/money.ts'
import { isTimeZone, parseDuration } from '#shared/time.ts'

/** `08:00 Asia/Ho_Chi_Minh` */
export interface DailyTime {
  readonly hours: number
  readonly minutes: number
  readonly zone: string
}

export const DEFAULT_HOST = '127.0.0.1'
const DEFAULT_PORT = 8080
export const DEFAULT_DKIM_SELECTOR = 'paygate'
/** Thirty days. Nobody waits longer for an event, and the date stays representable. */
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
const MAILBOX = /^([^<>]*<[^@\s,<>]+@[^@\s,<>]+>|[^@\s,<>]+@[^@\s,<>]+)\s*$/
/** Of 62 characters, or longer with a kind before its last `1` (`age1pq1…`), in the alphabet of Bech32. */
const AGE_RECIPIENT = /^age1([a-z]+1)?[02-9ac-hj-np-z]{58,}$/
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

/** Each variable by its form. What they must be together is in `combined-errors.ts`. */
export const Settings = z.object({
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
  BILLING_MAIL_FROM: text.refine(
    (value) => value === null || MAILBOX.test(value),
    'must be an address, or Name <address>',
  ),
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
    .regex(/^[^@\s]*\{code\}[^@\s]*@[^@\s]+$/, 'must be an address with {code} before the @')
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
      context.addIssue('must be amounts with their currencies, each currency once, such as 5000000:VND,200:USD')
      return z.NEVER
    }),
  BILLING_BACKUP_DIR: text,
  BILLING_BACKUP_RECIPIENT: z
    .string()
    .regex(AGE_RECIPIENT, 'must be a whole public key of age, age1…')
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

export type Settings = z.infer<typeof Settings>
/** The variables that are set, as they are written. */
export type Values = Readonly<Partial<Record<keyof Settings, string>>>

/** Every variable that is read; README and `.env.example` name them all. */
export const VARIABLES: readonly string[] = Object.keys(Settings.shape)
/** The domain of `billing@example.com` or `Billing <billing@example.com>`; empty where there is none. */
export function domainOf(mailbox: string): string {
  return (/@([^@<>\s]+)>?\s*$/.exec(mailbox)?.[1] ?? '').toLowerCase()
}

/** Undefined if the text is no time with a zone. */
function parseDailyTime(text: string): DailyTime | undefined {
  const [, hours = '', minutes = '', zone = ''] = /^([01]\d|2[0-3]):([0-5]\d) (\S+)$/.exec(text) ?? []
  return isTimeZone(zone) ? { hours: Number(hours), minutes: Number(minutes), zone } : undefined
}
