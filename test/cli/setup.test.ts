import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, globSync, mkdirSync, readFileSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { operator } from '#commands/caller.ts'
import { auditLog } from '#commands/store.ts'
import { runCli } from '#cli/run.ts'
import { checkAnswers } from '#setup/answers.ts'
import { inspectDatabase } from '#setup/database.ts'
import { writeInstalled } from '#setup/files.ts'
import { certbotWords, proxyFile } from '#setup/proxy.ts'
import { setUp } from '#setup/set-up.ts'
import { installedConfig } from '#setup/settings.ts'
import { isHidden } from '#setup/systemd-unit.ts'
import { systemClock } from '#shared/time.ts'
import { moveToOwnServer, testDatabase, urlOf } from '../support/database.ts'
import { anAuthority } from '../support/certificates.ts'
import { refusalOf } from '../support/expect-error.ts'
import { scratchFolder } from '../support/scratch.ts'
import { SmtpInbox } from '../mail/smtp-inbox.ts'
import { verifyDkim } from '../mail/verify-dkim.ts'
import { itRunsEveryForm } from './forms.ts'
import { onSimulatedTerminal } from './simulated-terminal.ts'
import { DOWN, ENTER, type Step as Answer } from './terminal.ts'
import { openCli, type Cli } from './run-cli.ts'
import { within } from './run-here.ts'

interface Step {
  readonly name: string
  readonly status: string
  readonly detail: string
}
type Answers = Readonly<Record<string, string>>

const ENV_FILE = 'etc/paygate/billing.env'
const CREDENTIALS = 'etc/paygate/credentials'

describe('the command line: setup', () => {
  let cli: Cli
  let inbox: SmtpInbox
  let root: string
  let answers: Answers
  let moveBack: () => Promise<void>

  // Doctor calls it a failure that the tests' server writes its log later.
  before(async () => {
    moveBack = await moveToOwnServer()
  })

  after(() => moveBack())

  beforeEach(async () => {
    cli = openCli()
    inbox = await SmtpInbox.open()
    root = join(scratchFolder('setup'), 'root')
    answers = {
      base_url: 'https://pay.example.com',
      database: testDatabase().url,
      smtp_url: inbox.url,
      mail_from: 'Billing <billing@example.com>',
      proxy: 'caddy',
      tls: 'auto',
      first_app: 'Reader',
    }
  })

  const onTestEnd: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    await inbox.stop()
    for (const end of onTestEnd.splice(0)) await end()
  })

  function words(given: Answers, ...options: readonly string[]): ['setup', string, ...string[]] {
    const file = join(scratchFolder('answers'), 'answers')
    writeFileSync(
      file,
      `# answers\n\n${Object.entries(given)
        .map(([key, value]) => `${key} = ${value}\n`)
        .join('')}`,
    )
    return ['setup', '--answers', file, '--prefix', root, ...options]
  }

  const run = (given: Answers, ...options: readonly string[]) => cli.json(words(given, ...options))
  const statuses = ({ steps }: { steps: readonly Step[] }) =>
    Object.fromEntries(steps.map(({ name, status }) => [name, status]))
  const detailOf = ({ steps }: { steps: readonly Step[] }, step: string) =>
    steps.find(({ name }) => name === step)?.detail ?? ''
  const filesBelow = () => globSync('**/*', { cwd: root }).filter((path) => statSync(join(root, path)).isFile())

  it('makes settings, keys, tables, units and a proxy, and a second run changes nothing', async () => {
    const { db, name, socketPath } = testDatabase()
    // The user may make it.
    answers = { ...answers, database: urlOf(socketPath, `${name}_setup`) }
    onTestEnd.push(() => db.query(`DROP DATABASE ${name}_setup`))
    const first = await run(answers)
    const systemd = { service: 'skipped', proxy_service: 'skipped' }
    expect(statuses(first)).to.include({ ...MADE, ...systemd })
    expect(filesBelow()).to.have.members([
      ENV_FILE,
      'etc/paygate/setup.json',
      ...['ENCRYPTION_KEYS', 'METRICS_TOKEN', 'DKIM_KEY', 'SMTP_URL', 'DATABASE_URL'].map(
        (name) => `${CREDENTIALS}/BILLING_${name}`,
      ),
      ...['billing-daemon.service', 'billing-backup.service', 'billing-backup.timer'].map(
        (unit) => `etc/systemd/system/${unit}`,
      ),
      ...['usr/local/bin/billing-cli', 'etc/caddy/Caddyfile'],
    ])
    for (const file of globSync(`${root}/${CREDENTIALS}/*`)) expect(statSync(file).mode & 0o777, file).to.equal(0o600)
    const before = filesBelow().map((path) => readFileSync(join(root, path), 'utf8'))
    const second = await run(answers)
    const same = Object.fromEntries(Object.keys(MADE).map((name) => [name, 'unchanged']))
    expect(statuses(second)).to.deep.equal({ ...same, ...systemd })
    expect(second.dns).to.deep.equal(first.dns)
    expect(filesBelow().map((path) => readFileSync(join(root, path), 'utf8'))).to.deep.equal(before)
    expect(inbox.mails, 'one test mail').to.have.length(1)
    expect(statuses(await run(answers, '--check'))).to.deep.equal({ ...same, ...systemd })
  })

  it('is in the audit log under the name of the operator, who may have come by SSH', async () => {
    const surroundings = { env: cli.env, stdin: new PassThrough().end(), write: () => undefined, columns: null }
    await within(surroundings, () => runCli(words(answers), { name: 'linh', role: 'owner' }))
    const created = await testDatabase().db.all(auditLog, `WHERE action = 'app.create'`)
    expect(created.map(({ actor }) => actor)).to.deep.equal(['linh'])
  })

  it('what was written and not loaded, since a restart failed, is loaded by the next run', async () => {
    const folder = scratchFolder('programs')
    const [log, failing] = [join(folder, 'log'), join(folder, 'failing')]
    const program = (name: string, script: string) =>
      writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
    program('systemctl', `echo "$1 $2" >> ${log}; case $1 in show) echo active ;; re*) [ ! -e ${failing} ] ;; esac`)
    for (const name of ['caddy', 'runuser']) program(name, 'exit 0')
    const { PATH } = process.env
    process.env['PATH'] = `${folder}:${PATH}`
    onTestEnd.push(() => Promise.resolve(Object.assign(process.env, { PATH })))
    const given = checkAnswers(answers, systemClock.now())
    const options = { prefix: root, caller: operator('ann'), isCheck: false, hasSystemd: true }
    const runs = async () => {
      writeFileSync(log, '')
      const { service, proxy_service } = statuses(await setUp(given, options))
      return [service, proxy_service]
    }
    // systemd hides some folders from a service, which then has no unit.
    const unless = (status: string) => (isHidden(process.cwd()) ? 'skipped' : status)
    writeFileSync(failing, '')
    expect(await runs()).to.deep.equal([unless('failed'), 'failed'])
    unlinkSync(failing)
    expect(await runs()).to.deep.equal([unless('done'), 'done'])
    expect(readFileSync(log, 'utf8')).to.include('reload caddy')
    expect(await runs()).to.deep.equal([unless('unchanged'), 'unchanged'])
    expect(readFileSync(log, 'utf8')).not.to.match(/^re/m)
  })

  it('prints the DNS records, among them the key that verifies the test mail', async () => {
    const { dns } = await run({ ...answers, test_mail_to: 'owner@example.net' })
    const texts = Object.fromEntries(dns.filter(({ type }) => type === 'TXT').map(({ name, value }) => [name, value]))
    expect(dns[0]!).to.include({ type: 'A', name: 'pay.example.com' })
    expect(texts['example.com']).to.match(/^v=spf1 a:pay\.example\.com /)
    expect(texts['_dmarc.example.com']).to.match(/^v=DMARC1; /)
    const [mail] = inbox.mails
    expect(mail?.recipients).to.deep.equal(['owner@example.net'])
    expect(verifyDkim(mail!.raw, texts)).to.equal(true)
  })

  it('with --check and --dry-run nothing is written, and each step says what it would do', async () => {
    for (const option of ['--check', '--dry-run']) {
      const report = await run(answers, option)
      expect(report.steps.filter(({ status }) => status !== 'skipped' && status !== 'unchanged')).to.deep.equal([])
      for (const { name, status, detail } of report.steps)
        if (status === 'skipped') expect(detail, name).to.match(/^would /)
      expect(detailOf(report, 'first_app')).to.include('would create the app Reader')
      expect(existsSync(root)).to.equal(false)
    }
    expect(inbox.messagesSeen).to.equal(0)
  })

  it('changes only what differs, and keeps keys and the lines of operators', async () => {
    await run(answers)
    const keys = readFileSync(join(root, CREDENTIALS, 'BILLING_ENCRYPTION_KEYS'), 'utf8')
    const env = readFileSync(join(root, ENV_FILE), 'utf8')
    writeFileSync(join(root, ENV_FILE), `${env}# ours\nBILLING_REFUND_LIMIT=5000000:VND\n`)
    const checked = await run({ ...answers, base_url: 'https://billing.example.com' }, '--check')
    expect(detailOf(checked, 'first_app'), 'the app exists').to.equal(
      'would create the app Reader if needed: waits for the step schema',
    )
    const changed = await run({ ...answers, base_url: 'https://billing.example.com', first_app: 'Shop' })
    expect(
      Object.entries(statuses(changed))
        .filter(([, status]) => status === 'done')
        .map(([name]) => name),
    ).to.deep.equal(['settings', 'proxy', 'first_app', 'dns'])
    const now = readFileSync(join(root, ENV_FILE), 'utf8')
    expect(now).to.match(/^BILLING_BASE_URL=https:\/\/billing\.example\.com$/m)
    expect(now).to.match(/# ours\nBILLING_REFUND_LIMIT=5000000:VND\n$/)
    expect(now.match(/^BILLING_BASE_URL=/gm)).to.have.length(1)
    expect(readFileSync(join(root, CREDENTIALS, 'BILLING_ENCRYPTION_KEYS'), 'utf8')).to.equal(keys)
  })

  it('systemd, billing-cli and setup read the same settings, also those with quotation marks and backslashes', async () => {
    const mailFrom = '"Example, \\"the\\" Inc." <billing@example.com>'
    await run({ ...answers, mail_from: mailFrom })
    const env = readFileSync(join(root, ENV_FILE), 'utf8')
    // systemd.exec(5) reads this as it was answered.
    expect(env).to.include(`BILLING_MAIL_FROM="\\"Example, \\\\\\"the\\\\\\" Inc.\\" <billing@example.com>"\n`)
    expect(installedConfig(root).mailFrom).to.equal(mailFrom)
    expect(statuses(await run({ ...answers, mail_from: mailFrom }))).to.include({ settings: 'unchanged' })

    writeFileSync(
      join(root, ENV_FILE),
      `${env}  PLAIN=a "b" c  \nQUOTED="a b"\nSINGLE='a b'\nESCAPED=a\\\\b\nINSIDE=a="b"\n`,
    )
    const program = join(scratchFolder('program'), 'bin', 'billing-cli')
    mkdirSync(dirname(program))
    writeFileSync(program, '#!/bin/sh\nexec env\n', { mode: 0o755 })
    const script = readFileSync(join(root, 'usr/local/bin/billing-cli'), 'utf8')
      .replaceAll('/etc/paygate', join(root, 'etc/paygate'))
      .replace(/exec \S+/, `exec ${program}`)
    const read = execFileSync('sh', ['-c', script], { encoding: 'utf8' }).split('\n')
    expect(read).to.include.members([
      `BILLING_MAIL_FROM=${mailFrom}`,
      ...['PLAIN=a "b" c', 'QUOTED=a b', 'SINGLE=a b', 'ESCAPED=a\\b', 'INSIDE=a="b"'],
    ])
  })

  it('makes the first app once, and shows its secret once', async () => {
    const first = detailOf(await run(answers), 'first_app')
    expect(first).to.match(/app \d+, api_key pk_live_\w+, api_secret sk_[\w-]+:/)
    const [, secret = ''] = /api_secret (\S+):/.exec(first) ?? []
    const again = await cli.run(words(answers))
    expect(again.code).to.equal(0)
    expect(again.stdout).not.to.include(secret)
    const apps = await cli.json(['app', 'list'])
    expect(apps.map(({ name }) => name)).to.deep.equal(['Reader'])
  })

  it('runs with Paygate’s own database server, too', async () => {
    const report = await run({ ...answers, database: 'embedded-service', proxy: 'none', tls: '' })
    expect(statuses(report)).to.include({ database: 'done', first_app: 'done', doctor: 'done' })
    const unit = readFileSync(join(root, 'etc/systemd/system/billing-daemon.service'), 'utf8')
    expect(unit).to.match(/^#LoadCredential=BILLING_DATABASE_URL/m)
    expect(unit).to.match(/^LoadCredential=BILLING_DKIM_KEY/m)
    const second = await run({ ...answers, database: 'embedded-service', proxy: 'none', tls: '' })
    expect([...new Set(Object.values(statuses(second)))].sort()).to.deep.equal(['skipped', 'unchanged'])
  })

  it('a part that fails exits 1 and says why; parts that do not need it go on', async () => {
    await inbox.stop()
    const report = await cli.json(words(answers), { code: 1 })
    expect(statuses(report)).to.include({
      schema: 'unchanged',
      test_mail: 'failed',
      doctor: 'failed',
      first_app: 'done',
    })
    expect(detailOf(report, 'test_mail')).to.include('the mail server did not accept it')
    await inbox.start()
    expect(statuses(await run(answers))).to.include({ test_mail: 'done', doctor: 'done', first_app: 'unchanged' })
  })

  it('a refusal has a code and says what to do', async () => {
    const { socketPath, name } = testDatabase()
    const databaseUrl = `mysql://stranger:canary@localhost/${name}?socketPath=${encodeURIComponent(socketPath)}`
    const given = { ...checkAnswers(answers, systemClock.now()), databaseUrl }
    const found = await inspectDatabase(given, { home: root, make: null })
    const denied = await refusalOf(Promise.resolve(found.is === 'pending' && found.act()))
    expect([denied.code, denied.message]).to.deep.equal([
      'invalid_request',
      'the server refuses the user or the password, and its root is not reachable from here: make the database and its user there, and run this again',
    ])
    const folder = scratchFolder('of-root')
    chmodSync(folder, 0o500)
    const unwritable = await refusalOf(
      asOrdinaryUser(() => writeInstalled(folder, { path: '/etc/x', content: '', mode: 0o644 })),
    )
    expect([unwritable.code, unwritable.message]).to.deep.equal([
      'invalid_request',
      `${folder}/etc/x cannot be written: run this as root`,
    ])
  })

  const asOrdinaryUser = (work: () => void): Promise<void> =>
    new Promise((resolve) => {
      const id = process.geteuid!()
      if (id === 0) process.seteuid!('nobody')
      try {
        work()
        resolve()
      } finally {
        process.seteuid!(id)
      }
    })

  it('never overwrites the sites of others', async () => {
    await run({ ...answers, proxy: 'none', tls: '' })
    const file = join(root, 'etc/caddy/Caddyfile')
    execFileSync('mkdir', ['-p', join(root, 'etc/caddy')])
    writeFileSync(file, 'www.example.com {\n}\n')
    expect(statuses(await cli.json(words(answers), { code: 1 }))).to.include({ proxy: 'failed' })
    expect(readFileSync(file, 'utf8')).to.equal('www.example.com {\n}\n')
  })

  it('a wrong answer exits 1 and names its key before anything is written', async () => {
    const authority = anAuthority()
    const folder = scratchFolder('certificates')
    const [mine, other] = [authority.issue('pay.example.com'), authority.issue('www.example.com')]
    const file = (name: string, content: string | Buffer) => {
      writeFileSync(join(folder, name), content)
      return join(folder, name)
    }
    const [cert, key] = [file('cert.pem', mine.cert), file('key.pem', mine.key)]
    const files = { cert_file: cert, key_file: key, tls: '' }
    const wrong: readonly (readonly [key: string, change: Answers])[] = [
      ['base_url', { base_url: '' }],
      ['base_url', { base_url: 'pay.example.com' }],
      ['base_url', { base_url: 'http://pay.example.com', proxy: 'none', tls: '' }],
      ['base_url', { base_url: 'https://pay.example.com/billing' }],
      ['database', { database: 'postgres://u:canary@h/d' }],
      ['database', { database: 'mysql://u:canary@h/d?timeout=3' }],
      ['database', { database: 'embedded' }],
      ['smtp_url', { smtp_url: 'http://u:canary@h' }],
      ['smtp_url', { smtp_url: 'smtp://u:canary@smtp.example.com' }],
      ['mail_from', { mail_from: 'Billing' }],
      ['mail_from', { mail_from: '' }],
      ['test_mail_to', { test_mail_to: 'me' }],
      ['proxy', { proxy: 'apache' }],
      ['tls', { tls: '' }],
      ['tls', { tls: 'yes' }],
      ['tls', { proxy: 'none' }],
      ['cert_file', { ...files, proxy: 'none' }],
      ['tls', { ...files, tls: 'auto' }],
      ['key_file', { ...files, key_file: '' }],
      ['cert_file', { ...files, cert_file: '' }],
      ['cert_file', { ...files, cert_file: join(folder, 'none.pem') }],
      ['cert_file', { ...files, cert_file: file('text.pem', 'text') }],
      ['cert_file', { ...files, cert_file: file('other.pem', other.cert), key_file: file('other-key.pem', other.key) }],
      ['key_file', { ...files, key_file: file('third.pem', authority.issue('pay.example.com').key) }],
      ['first_app', { first_app: 'x'.repeat(200) }],
      ['relay_address', { relay_address: 'bank@pay.example.com' }],
      ['colour', { colour: 'blue' }],
    ]
    for (const [name, change] of wrong) {
      const message = await cli.refused(words({ ...answers, ...change }))
      expect(message, JSON.stringify(change)).to.match(new RegExp(`^error: wrong answers: (.*; )?${name} `))
      expect(message).not.to.include('canary')
    }
    const both = await cli.refused(words({ ...answers, base_url: 'x', proxy: 'x' }))
    expect(both).to.match(/base_url [^;]+; proxy /)
    expect(await cli.refused([...words(answers).slice(0, 2), file('lines', 'base_url\n')])).to.include('line 1')
    expect(await cli.refused([...words(answers).slice(0, 2), file('twice', 'proxy=none\nproxy=caddy\n')])).to.include(
      'twice',
    )
    expect(await cli.misused(['setup', '--prefix', root])).to.include('--answers')
    expect(existsSync(root)).to.equal(false)
  })

  it('the configurations of the proxies are those of the documentation', () => {
    const page = readFileSync('docs/operating.md', 'utf8')
    const block = (language: string) =>
      (new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(page)?.[1] ?? '').replace(/^# \/etc.*\n/, '')
    const given = { ...answers, database: 'embedded-service' }
    for (const proxy of ['nginx', 'caddy']) {
      const file = proxyFile(checkAnswers({ ...given, proxy }, systemClock.now()), { host: '127.0.0.1', port: 8080 })
      expect(file?.content.replace(/^# Written.*\n/, ''), proxy).to.equal(block(proxy))
    }
  })

  it('the proxy reaches the daemon at the address that it listens on, IPv6 too', () => {
    const given = checkAnswers({ ...answers, database: 'embedded-service', proxy: 'caddy' }, systemClock.now())
    const addressIn = (host: string) =>
      / reverse_proxy (\S+)/.exec(proxyFile(given, { host, port: 8081 })?.content ?? '')?.[1]
    expect(['127.0.0.2', '::1', '::', '0.0.0.0'].map(addressIn)).to.deep.equal([
      '127.0.0.2:8081',
      '[::1]:8081',
      '127.0.0.1:8081',
      '127.0.0.1:8081',
    ])
  })

  it('nginx with tls=auto reads the certificate that certbot gets and renews for its name', () => {
    const given = checkAnswers({ ...answers, database: 'embedded-service', proxy: 'nginx' }, systemClock.now())
    const words = certbotWords(given)
    expect(words.slice(-6)).to.deep.equal([
      ...['-m', 'billing@example.com', '--cert-name', 'pay.example.com', '-d', 'pay.example.com'],
    ])
    expect(words.join(' ')).to.include('--deploy-hook systemctl reload nginx')
    const { content = '' } = proxyFile(given, { host: '127.0.0.1', port: 8080 }) ?? {}
    for (const line of ['ssl_certificate ', 'ssl_certificate_key '])
      expect(content).to.match(new RegExp(`^  ${line}/etc/letsencrypt/live/pay\\.example\\.com/`, 'm'))
  })

  it('people see each step with its state, and the records line by line', async () => {
    const { stdout, code } = await cli.run(words(answers))
    expect(code).to.equal(0)
    expect(stdout).to.match(/^schema +unchanged: the tables/m)
    expect(stdout).to.match(/^TXT paygate\._domainkey\.example\.com\n {2}v=DKIM1; k=rsa; p=\S+$/m)
  })

  it('asks on a terminal, each question until its answer is right', async () => {
    const typed = (question: string, text: string): Answer => [question, text + ENTER]
    const { text, left, code } = await onSimulatedTerminal(
      cli.env,
      ['setup', '--prefix', root, '--dry-run'],
      [
        typed('Public address', 'pay.example.com'),
        typed('Public address', 'https://pay.example.com'),
        typed('Database', 'embedded-service'),
        typed('Mail server', 'smtps://user:canary@smtp.example.com'),
        typed('Sender of mails', 'Billing <billing@example.com>'),
        ['What ends TLS', DOWN + ENTER],
        ['Which certificate', ENTER],
        typed("Mailbox of the banks' mails", ''),
        typed('Name of the first app', 'Reader'),
      ],
    )
    expect([code, left]).to.deep.equal([0, []])
    expect(text).to.include('base_url must be an http(s) address')
    expect(text).to.include('would create the app Reader').and.to.include('by certbot')
    expect(text).not.to.include('canary')
    expect(existsSync(root)).to.equal(false)
  })

  itRunsEveryForm('setup.test.ts')
})

const MADE = {
  ...{ packages: 'unchanged', settings: 'done', keys: 'done', dkim: 'done', program: 'done', unit: 'done' },
  ...{ database: 'done', schema: 'done', proxy: 'done', first_app: 'done', dns: 'done', test_mail: 'done' },
  doctor: 'done',
}
