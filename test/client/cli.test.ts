import { spawn, type ChildProcess } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { join } from 'node:path'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { run as runPaygate } from '../../client/src/cli/run.ts'
import type { Customer } from '../../client/src/types.ts'
import { inTransaction } from '#commands/transaction.ts'
import type { Context } from '#context.ts'
import { HOUR_MS, systemClock } from '#shared/time.ts'
import { envelopeOf } from '#webhooks/envelope.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import { signingKeys, webhookHeaders } from '#webhooks/signature.ts'
import { getEventOfApp } from '#webhooks/store.ts'
import { within } from '../cli/run-here.ts'
import type { Shown } from '../cli/shown.ts'
import type { Envelope } from '../support/answers.ts'
import { startService, type TestService } from '../support/api.ts'
import { TestClock, wrongClock } from '../support/context.ts'
import { aCompletion, anApp, type TestApp } from '../support/factories.ts'
import { Receiver } from '../support/receiver.ts'
import { scratchFolder } from '../support/scratch.ts'
import { freePort } from '../support/free-ports.ts'
import { until } from '../support/until.ts'

const PROGRAM = join(import.meta.dirname, '../../client/src/cli/main.ts')

interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

const forwardedIn = ({ stdout }: Ran) => (JSON.parse(stdout) as Shown<'listen'>).forwarded

describe('npx paygate', () => {
  let service: TestService
  let receiver: Receiver
  let ctx: Context
  let app: TestApp
  let settings: Record<string, string>
  let started: ChildProcess | null

  beforeEach(async () => {
    service = await startService({}, TestClock.present())
    ctx = { ...service.ctx, clock: systemClock }
    app = await anApp(ctx, { webhookUrl: 'http://127.0.0.1:9/hooks' })
    receiver = await Receiver.start()
    receiver.secret = app.webhookSecret ?? null
    settings = {
      PAYGATE_URL: `${service.url}/api/v1`,
      PAYGATE_API_KEY: app.apiKey,
      PAYGATE_API_SECRET: app.secret,
      PAYGATE_WEBHOOK_SECRET: app.webhookSecret ?? '',
    }
    started = null
  })

  afterEach(async () => {
    started?.kill('SIGKILL')
    await receiver.stop()
    await service.stop()
  })

  function start(words: readonly string[], env: Record<string, string>): ChildProcess {
    const { NODE_COMPILE_CACHE } = process.env
    started = spawn(process.execPath, [PROGRAM, ...words], { env: { NODE_COMPILE_CACHE, ...env } })
    return started
  }

  /** In this process, but for what only a process of its own shows: how it ends, its signals, its streams. */
  async function run(words: readonly string[], env = settings, stdin?: string): Promise<Ran> {
    const written = { stdout: '', stderr: '' }
    const write = (stream: 'stdout' | 'stderr', chunk: string) => (written[stream] += chunk)
    const surroundings = { env, stdin: new PassThrough().end(stdin), write, columns: null }
    const code = await within(surroundings, () => runPaygate(words))
    return { code, ...written }
  }

  async function runProgram(words: readonly string[], env = settings, stdin?: string): Promise<Ran> {
    const program = start(words, env)
    const ended = new Promise<number | null>((resolve) => program.once('close', resolve))
    // Without input it is only closed: a program that refuses its words may have ended by then.
    program.stdin!.end(stdin)
    const [stdout, stderr, code] = await Promise.all([text(program.stdout!), text(program.stderr!), ended])
    return { code, stdout, stderr }
  }

  async function fails(code: number, words: readonly string[], part: string, env = settings): Promise<void> {
    expectFailure(await run(words, env), code, part)
  }

  function expectFailure(ran: Ran, code: number, part: string): void {
    expect([ran.code, ran.stdout], ran.stderr).to.deep.equal([code, ''])
    expect(ran.stderr)
      .to.match(/^error: /)
      .and.to.include(part)
      .and.not.to.include(app.secret)
  }

  async function emit(ref: string, by = ctx): Promise<void> {
    await inTransaction(by, async (tx) => {
      await emitEvent(tx, { app: app.app, type: 'transaction.completed', data: aCompletion(ref) })
    })
  }

  it('listen forwards events byte by byte as the daemon sends them, with both signatures', async () => {
    await emit('an', { ...ctx, clock: wrongClock(-3 * HOUR_MS) })
    await emit('binh')
    const words = ['listen', '--since', '2h', '--events', 'transaction.*', '--count', '1', '--forward-to', receiver.url]
    const { code, stdout, stderr } = await run(words)
    expect([code, stderr]).to.deep.equal([0, `listening, forwarding to ${receiver.url}; Ctrl-C ends\n`])
    expect(stdout).to.match(/^\d\d:\d\d:\d\d {2}evt_\d+ {2}transaction\.completed {2}binh {2}200 {2}\d+ ms\n$/)
    const [webhook, ...others] = receiver.received
    expect(others).to.deep.equal([])
    expect(webhook!.verified).to.equal(true)
    const event = await getEventOfApp(ctx.db, app.app.id, Number(webhook!.eventId.replace('evt_', '')))
    const { timestamp, raw: body } = webhook!
    expect(body.toString()).to.equal(envelopeOf(event).toString())
    const delivery = { eventId: event.id, eventType: event.eventType, attempt: 1, timestamp, body }
    const sent = Object.entries(webhookHeaders(signingKeys(app.webhookSecret ?? ''), delivery))
    expect(webhook!.headers).to.include(Object.fromEntries(sent.map(([name, value]) => [name.toLowerCase(), value])))
  })

  it('listen shows each new event until Ctrl-C, with nothing that steers the terminal', async () => {
    const program = start(['listen'], settings)
    const ended = new Promise<number | null>((resolve) => program.once('close', resolve))
    let [shown, said] = ['', '']
    program.stdout!.on('data', (chunk: Buffer) => (shown += chunk.toString()))
    program.stderr!.on('data', (chunk: Buffer) => (said += chunk.toString()))
    await until(() => said.includes('listening'))
    // Nothing says when it has begun, so events are written until one arrives.
    while (shown === '') await emit('\u001b[2Jan')
    expect(shown.split('\n')[0]).to.match(/ {2}\\u\{1b\}\[2Jan$/)
    program.kill('SIGINT')
    expect(await ended).to.equal(0)
  })

  it('listen ends quietly once the reader of its output has gone', async () => {
    const program = start(['listen'], settings)
    const said = text(program.stderr!)
    program.stdout!.once('data', () => program.stdout!.destroy())
    await until(async () => {
      await emit('an')
      return program.exitCode !== null
    })
    expect([program.exitCode, await said]).to.deep.equal([0, 'listening; Ctrl-C ends\n'])
  })

  it('prints JSON that steers no terminal, and reads as the same value', async () => {
    const ref = 'Jan\u009b2J\u202e'
    await emit(ref)
    const words = ['listen', '--since', '1h', '--count', '1', '--json']
    for (const { stdout } of [await run(words), await run(['request', 'GET', '/events'])]) {
      expect(stdout)
        .to.include('Jan\\u009b2J\\u202e')
        .and.not.to.match(/[\u0080-\u009f\u202e]/)
      expect(JSON.stringify(JSON.parse(stdout))).to.include(ref)
    }
  })

  it('request says so where the answer breaks off', async () => {
    const broken = createServer((_request, response) => {
      response.writeHead(200, { 'Content-Length': '100' }).write('{"success"', () => response.destroy())
    })
    await new Promise<void>((listening) => broken.listen(0, '127.0.0.1', listening))
    const url = `http://127.0.0.1:${(broken.address() as AddressInfo).port}`
    await fails(1, ['request', 'GET', '/plans'], 'did not answer in full (', {
      ...settings,
      PAYGATE_URL: url,
    })
    broken.close()
  })

  it('listen shows how a receiver refuses, and what cannot be reached', async () => {
    await emit('an')
    receiver.answer = 500
    const words = ['listen', '--since', '1h', '--count', '1', '--json', '--forward-to']
    const refused = await run([...words, receiver.url])
    expect(forwardedIn(refused)).to.deep.include({ http_status: 500, error: 'http_500' })
    const unreachable = await run([...words, `http://127.0.0.1:${await freePort()}/`])
    expect(forwardedIn(unreachable)).to.deep.include({ http_status: null, error: 'ECONNREFUSED' })
  })

  it('request signs a call, sends it, and exits with 1 if the service refuses it', async () => {
    const read = await runProgram(['request', 'get', '/plans?status=active'])
    expect([read.code, JSON.parse(read.stdout)]).to.deep.equal([0, { success: true, data: { plans: [] } }])
    const body = '{"name":"An","email":"an@example.com"}'
    const file = join(scratchFolder('request'), 'body.json')
    writeFileSync(file, body)
    for (const data of [body, `@${file}`, '-']) {
      const words = ['request', 'POST', '/api/v1/customers', '--data', data]
      const { code, stdout, stderr } = await (data === '-' ? runProgram : run)(words, settings, body)
      const made = JSON.parse(stdout) as Envelope<Customer>
      expect([code, made.data.name, stderr]).to.deep.equal([0, 'An', 'POST /api/v1/customers: 201\n'])
    }
    const refused = await runProgram(['request', 'POST', '/customers', '--data', '{}'])
    const { error } = JSON.parse(refused.stdout) as Envelope<never>
    expect([refused.code, error.code]).to.deep.equal([1, 'invalid_request'])
    expect((await run(['request', 'GET', '/subscriptions/nguyễn an?x=1'])).stdout).to.include('invalid_request')
  })

  it('reads its settings from a file, before which the environment goes', async () => {
    const file = join(scratchFolder('env'), '.env')
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
    writeFileSync(file, `${lines.join('\n')}\n`)
    const words = ['request', 'GET', '/plans', '--env-file', file]
    expect((await run(words, {})).code).to.equal(0)
    const elsewhere = { PAYGATE_URL: 'http://127.0.0.1:1' }
    for (const ran of [await run(words, elsewhere), await runProgram(words, elsewhere)])
      expectFailure(ran, 1, 'http://127.0.0.1:1/')
  })

  it('says what is missing or wrong, and never a secret', async () => {
    const withoutWebhooks = { ...settings, PAYGATE_WEBHOOK_SECRET: '' }
    const [url, hook] = [settings['PAYGATE_URL'] ?? '', 'http://127.0.0.1:1/hooks']
    await fails(2, ['request', 'GET', '/plans'], 'PAYGATE_API_KEY, PAYGATE_API_SECRET', { PAYGATE_URL: url })
    await fails(2, ['request', 'GET', '/plans'], 'PAYGATE_URL', { ...settings, PAYGATE_URL: 'shop' })
    // Node.js reads an --env-file wherever it stands, and refuses it before the program begins.
    const unread = await runProgram(['request', 'GET', '/plans', '--env-file', '/nowhere'], {})
    expect([unread.code === 0, unread.stderr.includes('/nowhere')]).to.deep.equal([false, true])
    await fails(2, ['request', 'DELETE', '/plans'], 'METHOD')
    await fails(2, ['request', 'GET', 'plans'], 'PATH')
    await fails(2, ['request', 'GET'], 'METHOD PATH')
    await fails(2, ['request', 'GET', '/plans', '--data', '{}'], '--data: a GET has no body')
    expectFailure(await runProgram(['serve']), 2, 'serve')
    await fails(2, ['request', 'GET', '/plans', '--env-file', '/nowhere'], '/nowhere', {})
    await fails(2, ['listen', '--loud'], '--loud')
    await fails(2, ['listen', '--since', 'yesterday'], '30m, 2h or 7d')
    await fails(2, ['listen', '--count', '0'], '--count')
    await fails(2, ['listen', '--forward-to', '127.0.0.1:3000'], 'http(s)')
    await fails(2, ['listen', '--forward-to', hook], 'PAYGATE_WEBHOOK_SECRET', withoutWebhooks)
    await fails(1, ['listen', '--events', 'transaction.lost'], 'transaction.completed')
    await fails(1, ['listen'], 'error: X-Signature', { ...settings, PAYGATE_API_SECRET: 'sk_other' })
  })

  it('shows its commands and its version', async () => {
    for (const words of [[], ['--help']]) expect((await run(words, {})).stdout).to.include('paygate listen')
    expect((await runProgram(['--help'], {})).stdout.split('\n').every((line) => line.length <= 80)).to.equal(true)
    expect((await run(['--version'], {})).stdout).to.match(/^\d+\.\d+\.\d+\n$/)
  })
})
