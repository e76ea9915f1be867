import { messageOf } from '#shared/errors.ts'
import { isLoopbackHost } from '#shared/loopback.ts'
import { parseKeyring } from '#shared/crypto.ts'
import { parseDkimKey } from '#shared/dkim-key.ts'
import type { Environment } from './environment.ts'
import { DEFAULT_HOST, type Values } from './settings.ts'

/** Minimum length, in production, of a secret that operators choose themselves. */
const MIN_SECRET_CHARACTERS = 16

/** Checks beyond the form of a single variable. They run even where a form is wrong, so that one start reports everything. */
export function combinedErrors(values: Values, environment: Environment): string[] {
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
  if (!from) errors.push('BILLING_MAIL_FROM must be an address with a domain if BILLING_DKIM_KEY is set')
  return errors
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
