import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { lossyServer } from '../db/lossy-server.ts'
import { openEmptyDatabase, testDatabase, urlOf } from '../support/database.ts'
import { testContext } from '../support/context.ts'
import { anApp } from '../support/factories.ts'
import { errorIn, openCli, PROGRAM } from './run-cli.ts'
import { scratchFolder } from '../support/scratch.ts'

describe('the command line: wrong usage, refusals and a service in trouble', () => {
  it('exits 2 with a message for unknown words, and suggests the nearest', async () => {
    const cli = openCli()
    const lines = [
      ['nonsense'],
      ['app', 'nonsense'],
      ['app', 'list', '--nonsense'],
      ['app', 'list', 'too', 'many'],
      ['app', 'create', '--name'],
      ['--nonsense'],
      ['completion', 'tcsh'],
      ['completion'],
    ]
    for (const words of lines) {
      const message = await cli.misused(words)
      expect(message, words.join(' ')).not.to.match(/ {4}at /)
    }
    expect(await openCli({}, { program: true }).misused(['transactions'])).to.include('Did you mean transaction?')
    expect(await cli.misused(['app', 'lst'])).to.include('Did you mean list?')
    for (const words of [[], ['app']]) {
      const ran = await cli.run(words)
      expect([ran.code, ran.stdout]).to.deep.equal([2, ''])
      expect(ran.stderr).to.include('Usage: billing-cli')
      const asJson = await cli.run([...words, '--json'])
      expect([asJson.code, asJson.stdout]).to.deep.equal([2, ''])
      expect(errorIn(asJson)).to.deep.equal({ code: 'invalid_request', message: 'name a command: --help lists them' })
    }
    const help = ['help', 'app']
    expect((await cli.run([...help, '--json'])).stdout).to.equal((await cli.run(help)).stdout)
  })

  it('exits 2 where price add is given several prices, of which one alone would go on sale', async () => {
    const prices = ['--price', '1000:VND:month', '--price', '10000:VND:year']
    expect(await openCli().misused(['price', 'add', '1', 'plan_1', ...prices])).to.include('give --price once')
  })

  it('exits 2 where an argument is missing and nobody can be asked, even when answers are piped in', async () => {
    const cli = openCli()
    await anApp(testContext())
    const lines: [string[], string][] = [
      [['app', 'create'], 'option --name'],
      [['app', 'create', '--name', 'Shop'], 'option --auth'],
      [['app', 'show'], 'argument <app>'],
    ]
    for (const [words, missing] of lines) {
      expect(await cli.misused(words)).to.equal(`error: missing required ${missing}\n`)
    }
    const piped = await cli.run(['app', 'create', '--name', 'Shop'], { stdin: 'y\n1\n' })
    expect(piped).to.deep.equal({ code: 2, stdout: '', stderr: 'error: missing required option --auth\n' })
  })

  it('names the argument or option that is wrong as its help does, and says what it must be', async () => {
    const id = String((await anApp(testContext(), { auth: 'identity' })).app.id)
    const account = join(scratchFolder('cli'), 'account-without-e-mail.json')
    writeFileSync(account, '{"project_id": "p"}')
    const realtime = ['app', 'set-realtime', id, '--database-url', 'https://p.firebaseio.com']
    const lines: [1 | 2, string[], string][] = [
      [1, ['mail', 'test', 'nobody'], '<address>: must be one e-mail address'],
      [1, [...realtime, '--service-account', account], '--service-account.client_email: is required'],
      [1, ['app', 'update', id, '--more-events', 'payment.made'], '--more-events: must be all, none'],
      [1, ['price', 'add', id, 'plan_1', '--price', '1000:VND:decade'], '--price: must be day'],
      [1, ['plan', 'create', id, '--code', 'A b', '--name', 'N', '--price', '1:VND:month'], '--code: must be'],
      [1, ['app', 'update', id, '--path', 'users/{uid}'], '--path: needs a realtime database'],
      [2, ['payment', 'show'], 'missing required argument <payment_id>'],
      [2, ['payment', 'show', 'x'], '<payment_id> must be a number from 1, not x'],
      [2, ['promotion', 'create', id, '--code', 'TET', '--percent', '0'], '--percent must be a number from 1, not 0'],
    ]
    await openCli().expectErrors(...lines.map(([code, words, message]) => [code, words, `error: ${message}`] as const))
  })

  it('takes no secret as an argument', async () => {
    const cli = openCli()
    for (const option of ['--secret-key', '--webhook-secret', '--api-key', '--checksum-key'])
      expect(await cli.misused(['method', 'enable', '1', 'card', option, 'sk_test_canary'])).to.include(
        'unknown option',
      )
    expect(await cli.misused(['method', 'enable', '1', 'card', 'sk_test_canary'])).not.to.include('canary')
  })

  it('names every error of the configuration and exits 1', async () => {
    const settings = { BILLING_PORT: 'http', BILLING_ENV: 'prod', BILLING_SWEEP_SECONDS: '-1' }
    const cli = openCli(settings, { program: true })
    const ran = await cli.run(['app', 'list', '--json'])
    expect([ran.code, ran.stdout]).to.deep.equal([1, ''])
    for (const name of ['BILLING_PORT', 'BILLING_ENV', 'BILLING_SWEEP_SECONDS']) expect(ran.stderr).to.include(name)
    expect(ran.stderr).not.to.match(/ {4}at /)
  })

  it('says in one line that the database cannot be reached or refuses access, and shows no password', async () => {
    const hosts = ['127.0.0.1:1', 'localhost:1', 'nowhere.invalid']
    for (const host of hosts) {
      const cli = openCli({ BILLING_DATABASE_URL: `mysql://paygate:canary@${host}/paygate` })
      const message = await cli.refused(['app', 'list'])
      expect(message, host).to.include('cannot be reached').and.include('BILLING_DATABASE_URL')
      expect(message).not.to.include('canary')
    }
    const gone = openCli({ BILLING_DATABASE_URL: urlOf(join(scratchFolder('gone'), 'gone'), 'x') })
    expect(await gone.refused(['app', 'list'])).to.include('cannot be reached')
    const other = openCli({ BILLING_DATABASE_URL: urlOf(testDatabase().socketPath, 'no_such_database') })
    expect(await other.refused(['app', 'list'])).to.include('BILLING_DATABASE_URL')
  })

  it('says that a change may have been made where no answer to COMMIT came', async () => {
    const server = await lossyServer(testDatabase().socketPath)
    server.fateOf = (statement) => (statement === 'COMMIT' ? 'lost' : 'pass')
    try {
      const own = openCli({ BILLING_DATABASE_URL: urlOf(server.socketPath, testDatabase().name) })
      const { code, message } = errorIn(
        await own.run(['app', 'create', '--name', 'Reader', '--auth', 'hmac', '--json']),
      )
      expect([code, message]).to.deep.equal([
        'service_unavailable',
        'the answer to COMMIT was lost, so the change may have been made: look before you run it again; is the server up?',
      ])
    } finally {
      await server.close()
    }
  })

  it('asks for a migration where the schema is behind, and migrates', async () => {
    const empty = await openEmptyDatabase('empty')
    try {
      const cli = openCli({ BILLING_DATABASE_URL: empty.url })
      expect(await cli.refused(['app', 'list'])).to.include('billing-cli migrate')
      const { applied } = await cli.json(['migrate'])
      expect(applied).to.have.length.greaterThan(0)
      expect(await cli.table(['app', 'list'])).to.include('billing-cli app create')
    } finally {
      await empty.drop()
    }
  })

  it('ends quietly when its reader closes the pipe, and reports a full disk', async () => {
    const { env } = openCli()
    const line = `set -o pipefail; ${PROGRAM} docs | head -c 1; ${PROGRAM} docs > /dev/full; echo " $?"`
    const { stdout, stderr } = await promisify(execFile)('bash', ['--norc', '-c', line], { env })
    expect([stdout, stderr]).to.deep.equal(['* 1\n', 'error: the output cannot be written: ENOSPC\n'])
  })

  it('ends only when the reader of a pipe has all of a long output, however slow it is', async () => {
    // The reader starts a program before it reads.
    const line = `${PROGRAM} docs --json | { ${process.execPath} --version > /dev/null; cat; }`
    const { stdout } = await promisify(execFile)('bash', ['-c', line], { env: openCli().env, maxBuffer: 2 ** 24 })
    expect(stdout.length).to.be.above(100_000)
    expect(JSON.parse(stdout)).to.be.an('array')
  })

  it('explains a command after help, and prints UTF-8 at full width in any locale', async () => {
    const cli = openCli()
    const { stdout } = await cli.run(['help', 'app', 'create'])
    expect(stdout).to.equal((await cli.run(['app', 'create', '--help'])).stdout)
    expect(await cli.run(['help', 'nonsense'])).to.include({ code: 2, stdout: '' })
    const { app } = await anApp(testContext(), { name: 'Sách hay' })
    const plain = openCli({ LC_ALL: 'C', LANG: 'C', COLUMNS: '20', TERM: 'dumb' }, { program: true })
    expect(await plain.table(['app', 'show', String(app.id)]))
      .to.include('[TEST] Sách hay')
      .and.match(/^name +Sách hay$/m)
  })

  it('accepts one of two conflicting changes that operators make at once', async () => {
    const cli = openCli({}, { program: true })
    const id = String((await anApp(testContext())).app.id)
    const create = ['plan', 'create', id, '--code', 'pro', '--name', 'Pro', '--price', '1000:VND:day', '--json']
    const ran = await Promise.all([cli.run(create), cli.run(create)])
    expect(ran.map(({ code }) => code).sort()).to.deep.equal([0, 1])
    const refused = errorIn(ran.find(({ code }) => code === 1)!)
    expect(refused.code).to.equal('plan_code_taken')
    expect(refused.message).to.include('another plan of this app has the code "pro"')
  })

  it('refuses receivers that are obviously not public, unless they are allowed', async () => {
    const cli = openCli({ BILLING_WEBHOOK_ALLOW_INSECURE: '0' })
    const id = String((await anApp(testContext())).app.id)
    const update = (url: string) => [1, ['app', 'update', id, '--webhook-url', url], 'public host'] as const
    await cli.expectErrors(
      update('http://shop.example/h'),
      update('https://127.1/h'),
      update('https://[::ffff:10.0.0.1]/h'),
    )
  })

  it('says where to look for an unknown app, and escapes what was typed', async () => {
    const cli = openCli()
    expect(await cli.refused(['app', 'show', '999'])).to.equal('error: app "999" not found; see billing-cli app list\n')
    expect(await cli.refused(['app', 'show', 'pk_\u001b[31m'])).to.include('\\u001b')
  })
})
