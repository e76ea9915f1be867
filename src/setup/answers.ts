import { X509Certificate, createPrivateKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { ConfigError, loadConfig } from '#config/config.ts'
import { domainOf } from '#config/settings.ts'
import { parseDatabaseUrl } from '#db/connect.ts'
import { AppError, messageOf } from '#shared/errors.ts'
import { emailAddress, name } from '#shared/validate.ts'

/** The keys of an answer file, in the order in which they are asked for. */
const ANSWER_KEYS = [
  ...['base_url', 'database', 'smtp_url', 'mail_from', 'test_mail_to', 'proxy', 'tls', 'cert_file', 'key_file'],
  ...['first_app', 'relay_address', 'relay_authserv_ids', 'relay_trusted_forwarders', 'relay_trusted_arc_sealers'],
] as const
export type AnswerKey = (typeof ANSWER_KEYS)[number]
const REQUIRED = ['base_url', 'database', 'smtp_url', 'mail_from', 'proxy']
/** Paygate's own private server, run with the service. */
export const EMBEDDED = 'embedded-service'
const PROXIES = ['caddy', 'nginx', 'none'] as const

/** What was answered, by key; a key without a value is absent. */
export type Given = Readonly<Record<string, string>>

export interface Answers {
  readonly baseUrl: URL
  /** Null for Paygate's own server. */
  readonly databaseUrl: string | null
  readonly smtpUrl: string
  readonly mailFrom: string
  /** Where the test mail goes. */
  readonly testMailTo: string
  readonly proxy: (typeof PROXIES)[number]
  /** Null: the proxy gets a certificate by itself, or there is no proxy. */
  readonly certificate: { readonly certFile: string; readonly keyFile: string } | null
  /** The name of an HMAC app; null for none. */
  readonly firstApp: string | null
  /** Settings of the bank-mail relay, by variable; null: none of them was answered. */
  readonly relay: Readonly<Record<string, string>> | null
}

type Errors = Map<string, string>

/** Reads lines `key=value`; lines that are empty or begin with `#` are skipped. Throws `invalid_request`, which names the line. */
export function parseAnswerLines(text: string): Given {
  const given: Record<string, string> = {}
  for (const [index, line] of text.split('\n').entries()) {
    const [, key, value = ''] = /^\s*([\w-]+)\s*=(.*)$/.exec(line) ?? []
    if (key !== undefined && key in given) throw wrong([[key, 'is given twice']])
    if (key !== undefined) given[key] = value.trim()
    else if (!/^\s*(#|$)/.test(line)) throw wrong([[`line ${index + 1}`, 'must be key=value']])
  }
  return given
}

/** Checks all answers together; throws `invalid_request` with every wrong key. */
export function checkAnswers(given: Given, now: Date): Answers {
  const errors = findErrors(given, now)
  if (errors.size > 0) throw wrong([...errors])
  const { base_url = '', database = '', smtp_url = '', mail_from = '', proxy, cert_file, key_file, first_app } = given
  return {
    baseUrl: new URL(base_url),
    databaseUrl: database === EMBEDDED ? null : database,
    smtpUrl: smtp_url,
    mailFrom: mail_from,
    testMailTo: given['test_mail_to'] || addressOf(mail_from),
    proxy: proxy as Answers['proxy'],
    certificate: cert_file && key_file ? { certFile: cert_file, keyFile: key_file } : null,
    firstApp: first_app || null,
    relay: given['relay_address'] ? relaySettings(given) : null,
  }
}

/** What is wrong with an answer, given the earlier ones; null if nothing is. */
export function errorOf(given: Given, key: string, now: Date): string | null {
  return findErrors(given, now).get(key) ?? null
}

/** `must …` by key, in the order in which they are asked for. */
function findErrors(given: Given, now: Date): Errors {
  const errors: Errors = new Map()
  for (const key of Object.keys(given)) if (!isKnown(key)) errors.set(key, 'is not an answer that setup knows')
  for (const key of REQUIRED) if (!given[key]) errors.set(key, 'must be given')
  for (const [key, rule] of [...settingErrors(given), ...ownErrors(given, now)])
    if (!errors.has(key)) errors.set(key, rule)
  const order = (key: string) => (isKnown(key) ? ANSWER_KEYS.indexOf(key) : ANSWER_KEYS.length)
  return new Map([...errors].sort(([a], [b]) => order(a) - order(b)))
}

function isKnown(key: string): key is AnswerKey {
  return (ANSWER_KEYS as readonly string[]).includes(key)
}

/** The errors that the check of the settings reports, by the keys of the answers. */
function settingErrors(given: Given): [string, string][] {
  const { base_url, database, smtp_url, mail_from } = given
  const settings = {
    BILLING_ENV: 'production',
    BILLING_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32).toString('base64')}`,
    ...(database === EMBEDDED ? { BILLING_ALLOW_EMBEDDED_DB: '1' } : { BILLING_DATABASE_URL: database }),
    BILLING_BASE_URL: base_url,
    BILLING_SMTP_URL: smtp_url,
    BILLING_MAIL_FROM: mail_from,
    ...relaySettings(given),
  }
  try {
    loadConfig(settings)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.errors.map(asAnswer)
    throw error
  }
}

function asAnswer(error: string): [string, string] {
  const [, variable = '', rule = ''] = /^BILLING_(\w+) (.*)$/s.exec(error) ?? []
  return [variable === 'DATABASE_URL' ? 'database' : variable.toLowerCase(), rule]
}

function relaySettings(given: Given): Record<string, string> {
  const entries = Object.entries(given).filter(([key, value]) => key.startsWith('relay_') && value !== '')
  return Object.fromEntries(entries.map(([key, value]) => [`BILLING_${key.toUpperCase()}`, value]))
}

/** The errors that the check of the settings cannot find. */
function ownErrors(given: Given, now: Date): [string, string][] {
  const { database = '', mail_from = '', proxy = '', first_app = '', test_mail_to = '' } = given
  const errors: [string, string | null][] = [
    ['database', database === EMBEDDED ? null : databaseError(database)],
    ['mail_from', isAddress(addressOf(mail_from)) ? null : 'must be an address, or Name <address>'],
    ['test_mail_to', test_mail_to === '' || isAddress(test_mail_to) ? null : 'must be one e-mail address'],
    ['proxy', PROXIES.some((one) => one === proxy) ? null : `must be ${PROXIES.join(', ')}`],
    ['first_app', first_app === '' ? null : nameError(first_app)],
    ...proxyErrors(given, now),
  ]
  return errors.filter((entry): entry is [string, string] => entry[1] !== null)
}

function databaseError(url: string): string | null {
  try {
    parseDatabaseUrl(url)
    return null
  } catch (error) {
    const rule = messageOf(error).replace(/^BILLING_DATABASE_URL:? /, '')
    return rule.startsWith('Invalid URL') ? `must be ${EMBEDDED} or mysql://user:password@host:port/database` : rule
  }
}

function proxyErrors(given: Given, now: Date): [string, string | null][] {
  if (!given['proxy']) return []
  return given['proxy'] === 'none' ? withoutProxy(given) : withProxy(given, now)
}

function withoutProxy(given: Given): [string, string][] {
  const keys = ['tls', 'cert_file', 'key_file'].filter((key) => given[key])
  return keys.map((key) => [key, 'is for a proxy: leave it out with proxy=none'])
}

function withProxy(given: Given, now: Date): [string, string | null][] {
  const { base_url = '', tls = '', cert_file = '', key_file = '' } = given
  const hasFiles = cert_file !== '' || key_file !== ''
  if (tls === '' && !hasFiles) return [baseError(base_url), ['tls', 'must be auto, or give cert_file and key_file']]
  if (!hasFiles) return [baseError(base_url), ['tls', tls === 'auto' ? null : 'must be auto']]
  if (tls !== '') return [['tls', 'and cert_file exclude each other']]
  return [baseError(base_url), ...fileErrors({ cert_file, key_file }, URL.parse(base_url)?.hostname ?? '', now)]
}

/** The proxy ends TLS, and passes paths on as they are. */
function baseError(text: string): [string, string | null] {
  const url = URL.parse(text)
  const isPlain = url?.protocol === 'https:' && url.pathname === '/' && /^[a-z0-9.-]+$/.test(url.hostname)
  return ['base_url', isPlain ? null : 'must be https:// and a name without a path for a proxy in front']
}

function fileErrors(
  files: { cert_file: string; key_file: string },
  host: string,
  now: Date,
): [string, string | null][] {
  const cert = readPem(files.cert_file, (bytes) => new X509Certificate(bytes))
  const key = readPem(files.key_file, createPrivateKey)
  const isOtherKey = cert.value && key.value && !cert.value.checkPrivateKey(key.value)
  return [
    ['cert_file', cert.value ? certificateError(cert.value, host, now) : cert.error],
    ['key_file', isOtherKey ? 'must be the key of cert_file' : key.error],
  ]
}

type Read<T> = { readonly value: T; readonly error: null } | { readonly value: null; readonly error: string }

/** What the PEM file holds, or what is wrong with it. */
function readPem<T extends object>(path: string, parse: (bytes: Buffer) => T): Read<T> {
  const failed = (error: string) => ({ value: null, error })
  // The path is written unchanged into the settings of a proxy.
  if (!/^\/[\w./@+-]+$/.test(path)) return failed('must be the whole path of a file, without blanks')
  let bytes
  try {
    bytes = readFileSync(path)
  } catch (error) {
    return failed(`cannot be read: ${(error as NodeJS.ErrnoException).code ?? messageOf(error)}`)
  }
  try {
    return { value: parse(bytes), error: null }
  } catch {
    return failed('must be a PEM file')
  }
}

function certificateError(certificate: X509Certificate, host: string, now: Date): string | null {
  if (certificate.checkHost(host) === undefined) return `must be a certificate for ${host}`
  return certificate.validToDate > now ? null : `ended on ${certificate.validTo}`
}

/** The address of a mailbox such as `Billing <billing@example.com>`. */
export function addressOf(mailbox: string): string {
  return (/<([^<>]*)>\s*$/.exec(mailbox)?.[1] ?? mailbox).trim()
}

function isAddress(text: string): boolean {
  return domainOf(text) !== '' && emailAddress.safeParse(text).success
}

function nameError(text: string): string | null {
  return name(191).safeParse(text).error?.issues[0]?.message ?? null
}

function wrong(errors: readonly (readonly [key: string, rule: string])[]): AppError {
  const list = errors.map(([key, rule]) => `${key} ${rule}`).join('; ')
  return new AppError('invalid_request', `wrong answers: ${list}`, { field: errors[0]?.[0] ?? '' })
}
