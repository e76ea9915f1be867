import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { ConfigError, loadConfig, unknownVariables } from '#config/config.ts'
import { operatorName } from '#config/environment.ts'
import { VARIABLES } from '#config/settings.ts'
import { scratchFolder } from '../support/scratch.ts'

const KEYS = `k1:${Buffer.alloc(32, 1).toString('base64')}`
const PRODUCTION = {
  BILLING_ENV: 'production',
  BILLING_ENCRYPTION_KEYS: KEYS,
  BILLING_DATABASE_URL: 'mysql://paygate:secret@db.example.com/paygate',
  BILLING_BASE_URL: 'https://pay.example.com',
}

const MAIL = { BILLING_MAIL_FROM: 'billing@pay.example.com' }

function errorsOf(environment: Readonly<Record<string, string>>): readonly string[] {
  try {
    loadConfig(environment)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.errors
    throw error
  }
}

describe('configuration', () => {
  it('needs nothing in development, and has the documented defaults', () => {
    const config = loadConfig({})
    expect(config).to.deep.include({
      env: 'development',
      databaseUrl: null,
      host: '127.0.0.1',
      port: 8080,
      baseUrl: 'http://127.0.0.1:8080',
      sweepSeconds: 60,
      checkoutTtlSeconds: 3600,
      rateLimitPerSecond: 100,
      mailsPerAppPerDay: 10_000,
      trustProxy: 0,
      logLevel: 'info',
    })
    expect(config.alerts).to.deep.equal({ mail: [], webhook: null, digest: null, seconds: 60 })
    expect(config.webhook).to.deep.equal({ timeoutMs: 10_000, allowInsecure: true, retryMinutes: [1, 5, 15, 60, 240] })
    expect(config.relay).to.deep.equal({
      secret: null,
      authservIds: [],
      trustedForwarders: [],
      trustedArcSealers: [],
      address: null,
    })
  })

  it('names all errors at once, each with its variable', () => {
    const errors = errorsOf({
      BILLING_PORT: '99999',
      BILLING_BASE_URL: 'ftp://x',
      BILLING_LOG_LEVEL: 'loud',
      BILLING_WEBHOOK_RETRY_MINUTES: '1,x',
      BILLING_RELAY_ADDRESS: 'bank@pay.example.com',
    })
    expect(errors.map((error) => error.split(' ')[0]).sort()).to.deep.equal([
      'BILLING_BASE_URL',
      'BILLING_LOG_LEVEL',
      'BILLING_PORT',
      'BILLING_RELAY_ADDRESS',
      'BILLING_WEBHOOK_RETRY_MINUTES',
    ])
  })

  it('the sender of mails is one address, with a name or without', () => {
    for (const sender of [
      'nobody',
      'Paygate',
      'a@b.example, c@d.example',
      '<a@b.example> c@d.example',
      'Billing <billing>',
    ])
      expect(errorsOf({ BILLING_MAIL_FROM: sender }), sender).to.deep.equal([
        'BILLING_MAIL_FROM must be an address, or Name <address>',
      ])
    for (const sender of [
      'billing@localhost',
      'Billing <billing@pay.example>',
      '"Example, Inc." <billing@pay.example>',
    ])
      expect(loadConfig({ BILLING_MAIL_FROM: sender }).mailFrom).to.equal(sender)
  })

  it('the recipient of backups is a whole key', () => {
    const key = 'age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p'
    for (const part of ['age1', 'age1x', key.slice(0, -1), key.toUpperCase(), `${key.slice(0, -1)}b`])
      expect(errorsOf({ BILLING_BACKUP_RECIPIENT: part }), part).to.deep.equal([
        'BILLING_BACKUP_RECIPIENT must be a whole public key of age, age1…',
      ])
    for (const whole of [key, `age1pq1${key.slice(4).repeat(3)}`])
      expect(loadConfig({ BILLING_BACKUP_RECIPIENT: whole }).backup.recipient).to.equal(whole)
  })

  it('alerts need whole addresses, a secret beside the webhook, and a time with a zone that exists', () => {
    const wrong = {
      BILLING_ALERT_MAIL: 'ops',
      BILLING_ALERT_WEBHOOK_URL: 'https://hooks.example.com/a',
      BILLING_ALERT_DIGEST: '08:00 Mars/Olympus',
      BILLING_ALERT_SECONDS: '0',
    }
    expect(errorsOf(wrong).map((error) => error.split(' ')[0])).to.have.members(Object.keys(wrong))
    const { alerts } = loadConfig({
      BILLING_ALERT_MAIL: 'ops@example.com, Linh@example.com',
      BILLING_ALERT_WEBHOOK_URL: 'https://hooks.example.com/a',
      BILLING_ALERT_WEBHOOK_SECRET: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
      BILLING_ALERT_DIGEST: '08:00 Asia/Ho_Chi_Minh',
      BILLING_ALERT_SECONDS: '0.5',
    })
    expect(alerts).to.deep.include({ mail: ['ops@example.com', 'linh@example.com'], seconds: 0.5 })
    expect(alerts.digest).to.deep.equal({ hours: 8, minutes: 0, zone: 'Asia/Ho_Chi_Minh' })
    expect(
      errorsOf({ ...PRODUCTION, BILLING_ALERT_MAIL: 'ops@example.com' }).map((error) => error.split(' ')[0]),
    ).to.deep.equal(['BILLING_SMTP_URL'])
  })

  for (const url of [
    'mysql://u:p@h1:3306,,h3:3306/d',
    'mysql://u:p@h1:3306,h2:x/d',
    'mysql://u:p@h1,h2',
    'mysql:/h1,h2/d',
  ])
    it(`names the field if the hosts are wrong: ${url}`, () => {
      expect(errorsOf({ BILLING_DATABASE_URL: url }).map((error) => error.split(' ')[0])).to.deep.equal([
        'BILLING_DATABASE_URL',
      ])
    })

  it('takes the hosts of a cluster', () => {
    const url = 'mysql://paygate:a,b@db1.example:3306,db2.example,[2001:db8::1]:3308/paygate?ssl=true'
    expect(loadConfig({ BILLING_DATABASE_URL: url }).databaseUrl).to.equal(url)
  })

  it('a limit of refunds has one amount for each currency, with its decimals', () => {
    for (const limit of ['5000000', '5.5:VND', '1:vnd', '5000000:VND,5:VND'])
      expect(
        errorsOf({ BILLING_REFUND_LIMIT: limit }).map((error) => error.split(' ')[0]),
        limit,
      ).to.deep.equal(['BILLING_REFUND_LIMIT'])
    const { refundLimit } = loadConfig({ BILLING_REFUND_LIMIT: '5000000:VND, 200.5:USD' })
    expect([...refundLimit]).to.deep.equal([
      ['VND', 5_000_000],
      ['USD', 20_050],
    ])
  })

  it('names what production refuses beside what is malformed', () => {
    const change = { BILLING_ENCRYPTION_KEYS: '', BILLING_PORT: 'x', BILLING_BASE_URL: 'http://pay.example.com' }
    expect(
      errorsOf({ ...PRODUCTION, ...change })
        .map((error) => error.split(' ')[0])
        .sort(),
    ).to.deep.equal(['BILLING_BASE_URL', 'BILLING_ENCRYPTION_KEYS', 'BILLING_PORT'])
  })

  it('limits each pause between webhook attempts to thirty days', () => {
    expect(errorsOf({ BILLING_WEBHOOK_RETRY_MINUTES: '1,43200' })).to.deep.equal([])
    expect(errorsOf({ BILLING_WEBHOOK_RETRY_MINUTES: '1,43201' })).to.deep.equal([
      'BILLING_WEBHOOK_RETRY_MINUTES must be at most 43200 each',
    ])
  })

  it('reveals no secret in an error', () => {
    const errors = errorsOf({
      BILLING_ENCRYPTION_KEYS: 'k1:hush-hush',
      BILLING_RELAY_SECRET: 'hush',
      BILLING_DATABASE_URL: 'postgres://u:hush@h/d',
    })
    expect(errors).to.have.length.greaterThan(1)
    expect(errors.join('\n')).to.not.include('hush')
  })

  const refusals: [string, Record<string, string | undefined>, string][] = [
    ['no encryption key', { BILLING_ENCRYPTION_KEYS: undefined }, 'BILLING_ENCRYPTION_KEYS'],
    ['an http base address that is not loopback', { BILLING_BASE_URL: 'http://pay.example.com' }, 'BILLING_BASE_URL'],
    ['the embedded database', { BILLING_DATABASE_URL: undefined }, 'BILLING_DATABASE_URL'],
    [
      'no base address where it listens to the world',
      { BILLING_BASE_URL: undefined, BILLING_HOST: '0.0.0.0' },
      'BILLING_BASE_URL',
    ],
    ['a relay secret that can be guessed', { BILLING_RELAY_SECRET: 'hush-hush' }, 'BILLING_RELAY_SECRET'],
    ['a metrics token that can be guessed', { BILLING_METRICS_TOKEN: 'hush-hush' }, 'BILLING_METRICS_TOKEN'],
    ['a card provider over http', { BILLING_STRIPE_API_BASE: 'http://api.example.com' }, 'BILLING_STRIPE_API_BASE'],
    ['a PayOS over http', { BILLING_PAYOS_API_BASE: 'http://10.0.0.7:8080/v2' }, 'BILLING_PAYOS_API_BASE'],
    ['a mail server without TLS', { ...MAIL, BILLING_SMTP_URL: 'smtp://u:p@mail.example.com:587' }, 'BILLING_SMTP_URL'],
    [
      'a mail server whose TLS is only asked for',
      { ...MAIL, BILLING_SMTP_URL: 'smtp://mail.example.com?requireTLS=1' },
      'BILLING_SMTP_URL',
    ],
    [
      'a mail server whose TLS is demanded and not demanded',
      { ...MAIL, BILLING_SMTP_URL: 'smtp://mail.example.com?requireTLS=true&requireTLS=false' },
      'BILLING_SMTP_URL',
    ],
    ['a mail server without a name', { ...MAIL, BILLING_SMTP_URL: 'smtp://' }, 'BILLING_SMTP_URL'],
    ['a database emulator', { FIREBASE_DATABASE_EMULATOR_HOST: '127.0.0.1:9000' }, 'FIREBASE_DATABASE_EMULATOR_HOST'],
    ['an identity emulator', { FIREBASE_AUTH_EMULATOR_HOST: '127.0.0.1:9099' }, 'FIREBASE_AUTH_EMULATOR_HOST'],
  ]
  for (const [title, change, variable] of refusals) {
    it(`production refuses ${title}`, () => {
      const environment = Object.fromEntries(
        Object.entries({ ...PRODUCTION, ...change }).filter(
          (entry): entry is [string, string] => entry[1] !== undefined,
        ),
      )
      expect(errorsOf(environment).map((error) => error.split(' ')[0])).to.deep.equal([variable])
    })
  }

  it('production names each insecure address at once', () => {
    const errors = errorsOf({
      ...PRODUCTION,
      ...MAIL,
      BILLING_STRIPE_API_BASE: 'http://a.example',
      BILLING_PAYOS_API_BASE: 'http://b.example',
      BILLING_SMTP_URL: 'smtp://hush:hush-hush@c.example',
    })
    expect(errors.map((error) => error.split(' ')[0])).to.deep.equal([
      'BILLING_STRIPE_API_BASE',
      'BILLING_PAYOS_API_BASE',
      'BILLING_SMTP_URL',
    ])
    expect(errors.join()).to.not.include('hush')
  })

  const secure: Record<string, string>[] = [
    { BILLING_STRIPE_API_BASE: 'https://a.example', BILLING_PAYOS_API_BASE: 'https://b.example/v2' },
    { BILLING_STRIPE_API_BASE: 'http://127.0.0.1:9001', BILLING_PAYOS_API_BASE: 'http://localhost:9002' },
    { BILLING_SMTP_URL: 'smtps://u:p@mail.example.com' },
    { BILLING_SMTP_URL: 'smtp://u:p@mail.example.com:587?requireTLS=true' },
    { BILLING_SMTP_URL: 'smtp://mail.example.com:587/?pool=true&requireTLS=true' },
    { BILLING_SMTP_URL: 'smtp://127.0.0.1:25' },
    { BILLING_SMTP_URL: 'smtp://[::1]:25' },
    { BILLING_SMTP_URL: 'smtp://mail.example.com', BILLING_SMTP_ALLOW_PLAINTEXT: '1' },
  ]
  for (const change of secure) {
    it(`production takes ${JSON.stringify(change)}`, () => {
      expect(errorsOf({ ...PRODUCTION, ...MAIL, ...change })).to.deep.equal([])
    })
  }

  it('development takes any address', () => {
    const addresses = { BILLING_STRIPE_API_BASE: 'http://a.example', BILLING_SMTP_URL: 'smtp://mail.example.com' }
    expect(errorsOf({ ...MAIL, ...addresses })).to.deep.equal([])
  })

  it('development takes short secrets', () => {
    expect(errorsOf({ BILLING_RELAY_SECRET: 'hush', BILLING_METRICS_TOKEN: 'hush' })).to.deep.equal([])
  })

  it('production starts on secure values, and on the embedded database if it is asked for', () => {
    expect(errorsOf(PRODUCTION)).to.deep.equal([])
    expect(loadConfig(PRODUCTION).webhook.allowInsecure).to.equal(false)
    expect(errorsOf({ ...PRODUCTION, BILLING_DATABASE_URL: '', BILLING_ALLOW_EMBEDDED_DB: '1' })).to.deep.equal([])
    expect(errorsOf({ ...PRODUCTION, BILLING_BASE_URL: 'http://127.0.0.1:8080' })).to.deep.equal([])
  })

  it('reads a systemd credential of the same name if the variable is not set', () => {
    const directory = scratchFolder('credentials')
    writeFileSync(join(directory, 'BILLING_ENCRYPTION_KEYS'), `${KEYS}\n`)
    expect(loadConfig({ CREDENTIALS_DIRECTORY: directory }).encryptionKeys).to.equal(KEYS)
  })

  const operators: [environment: Record<string, string>, uid: number, operator: string][] = [
    [{}, 0, 'root'],
    [{ SUDO_USER: 'linh' }, 0, 'linh (sudo)'],
    [{ SUDO_USER: 'SHOP\\linh.tran' }, 0, 'SHOP\\linh.tran (sudo)'],
    [{ SUDO_USER: 'linh' }, 1000, 'root'],
    [{ SUDO_USER: '' }, 0, 'root'],
    [{ SUDO_USER: 'linh (sudo)' }, 0, 'root'],
    [{ SUDO_USER: 'linh\u001b[2J' }, 0, 'root'],
    [{ SUDO_USER: 'x'.repeat(129) }, 0, 'root'],
  ]
  for (const [environment, uid, operator] of operators) {
    it(`the operator with ${JSON.stringify(environment).slice(0, 60)} as user ${uid} is ${operator}`, () => {
      expect(operatorName('root', environment, uid)).to.equal(operator)
    })
  }

  it('names what is called like a setting and is none', () => {
    const credentials = scratchFolder('credentials')
    for (const name of ['BILLING_SMTP_URI', 'BILLING_SMTP_URL', 'other'])
      writeFileSync(join(credentials, name), 'secret')
    const environment = { ...PRODUCTION, BILLING_REFUND_LIMITS: '', BILLING_CLI_DATABASE_PASSWORD: 'secret', HOME: '/' }
    expect(unknownVariables({ ...environment, CREDENTIALS_DIRECTORY: credentials })).to.have.members([
      'BILLING_REFUND_LIMITS',
      'BILLING_SMTP_URI',
    ])
    expect(unknownVariables({ CREDENTIALS_DIRECTORY: join(credentials, 'none') })).to.deep.equal([])
  })

  it('every variable is in the README and in .env.example, and no page of the documentation names one that is not read', () => {
    const readme = readFileSync('README.md', 'utf8')
    const pages = ['README.md', 'SECURITY.md', ...globSync('docs/*.md')].map((path) => readFileSync(path, 'utf8'))
    const example = readFileSync('.env.example', 'utf8')
    const named = (text: string) => new Set(text.match(/\b(?:BILLING|FIREBASE)_[A-Z_]+[A-Z]\b/g) ?? [])
    // Those of single commands are not settings; each command names its own.
    const sources = globSync('src/**/*.ts').map((path) => readFileSync(path, 'utf8'))
    const ofCommands = [...named(sources.join('\n'))].filter((name) => name.startsWith('BILLING_CLI_'))
    expect(ofCommands).to.have.length(6)
    const known = new Set<string>([...VARIABLES, ...ofCommands])
    for (const variable of [...known].filter((name) => /^(?:BILLING|FIREBASE)_/.test(name))) {
      expect(named(readme), variable).to.include(variable)
      expect(named(example), variable).to.include(variable)
    }
    expect([...named(example)].filter((name) => !known.has(name))).to.deep.equal([])
    expect([...named(pages.join('\n'))].filter((name) => !known.has(name))).to.deep.equal([])
  })
})
