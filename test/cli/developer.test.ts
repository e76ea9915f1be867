import { spawn } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { unixSeconds } from '#shared/time.ts'
import { EVENTS } from '#webhooks/events.ts'
import { startService, type TestService } from '../support/api.ts'
import { anApp, type TestApp } from '../support/factories.ts'
import { Receiver } from '../support/receiver.ts'
import { scratchFolder } from '../support/scratch.ts'
import { SmtpInbox } from '../mail/smtp-inbox.ts'
import { TestClock } from '../support/context.ts'
import { everyRow } from '../support/database.ts'
import { itRunsEveryForm } from './forms.ts'
import { errorIn, openCli, PROGRAM, type Cli } from './run-cli.ts'
import type { Shown } from './shown.ts'

describe('the command line: tools for developers', () => {
  let service: TestService
  let receiver: Receiver
  let app: TestApp
  let id: string
  let cli: Cli

  beforeEach(async () => {
    service = await startService({}, TestClock.present())
    receiver = await Receiver.start()
    app = await anApp(service.ctx, { webhookUrl: 'http://127.0.0.1:9/hooks' })
    receiver.secret = app.webhookSecret ?? null
    id = String(app.app.id)
    cli = openCli({ BILLING_BASE_URL: service.url })
  })

  afterEach(async () => {
    await receiver.stop()
    await service.stop()
  })

  it('request signs a call as the app, sends it, and prints the answer', async () => {
    const body = '{"name":"An","email":"an@example.com"}'
    // The first command of a group is run by the program itself, and so is what reads standard input.
    const read = await cli.json(['request', id, 'POST', '/customers', '--data', '-'], { stdin: body })
    expect(read.status).to.equal(201)
    const { value, text } = await cli.both(['request', id, 'get', '/plans?status=active'])
    expect(value).to.deep.equal({ status: 200, body: { success: true, data: { plans: [] } } })
    expect(JSON.parse(text)).to.deep.equal(value.body)
    const made = await cli.json(['request', id, 'POST', '/api/v1/customers', '--data', body])
    expect([made.status, made.body.data.name]).to.deep.equal([201, 'An'])
    const file = join(scratchFolder('request'), 'body.json')
    writeFileSync(file, body)
    expect((await cli.json(['request', id, 'POST', '/customers', '--data', `@${file}`])).status).to.equal(201)
    expect((await cli.json(['request', id, 'GET', '/customers'])).body.data).to.have.length(3)
  })

  it('request --dry-run shows what would be sent, and never the secret', async () => {
    const value = await cli.preview(['request', id, 'POST', '/customers', '--data', '{}'])
    const text = await cli.table(['request', id, 'POST', '/customers', '--data', '{}', '--dry-run'])
    expect(value).to.include({ dry_run: true, method: 'POST', url: `${service.url}/api/v1/customers`, body: '{}' })
    expect(value.headers['X-Signature']).to.match(/^[0-9a-f]{64}$/)
    expect(Math.abs(Number(value.headers['X-Timestamp']) - unixSeconds(new Date()))).to.be.below(60)
    expect(text).to.include(`X-App-Key: ${app.apiKey}`).and.not.to.include(app.secret)
  })

  it('request exits 1 when the service refuses the call, and names an invalid argument', async () => {
    const refused = await cli.json(['request', id, 'POST', '/customers', '--data', '{}'], { code: 1 })
    expect(refused.status).to.equal(400)
    const missing = await cli.run(['request', id, 'GET', '/customers/cus_999', '--json'])
    expect([missing.code, errorIn(missing).code]).to.deep.equal([1, 'not_found'])
    const identity = await anApp(service.ctx, { auth: 'identity' })
    await cli.expectErrors(
      [2, ['request', id, 'DELETE', '/plans'], 'method'],
      [2, ['request', id, 'GET', 'plans'], 'path'],
      [2, ['request', id, 'GET'], '<path>'],
      [2, ['request', id, 'GET', '/plans', '--url', 'nowhere'], '--url'],
      [1, ['request', id, 'GET', '/plans', '--url', 'http://127.0.0.1:1'], 'http://127.0.0.1:1'],
      [1, ['request', String(identity.app.id), 'GET', '/plans'], 'identity tokens'],
    )
    const unreachable = await cli.run(['request', id, 'GET', '/plans', '--url', 'http://127.0.0.1:1', '--json'])
    expect(errorIn(unreachable).code).to.equal('service_unavailable')
  })

  it('trigger produces each event by a real change, for a new end user each time', async () => {
    const { value, text } = await cli.both(['trigger', id, 'subscription.updated'])
    expect(value.external_ref).to.match(/^trigger-[0-9a-f]{8}$/)
    expect(value.events.map((event) => event.event_type)).to.deep.equal(['subscription.updated'])
    expect(text).to.include('[TEST] Reader').and.to.include('subscription.updated')
    const types = async (type: string, ...options: string[]): Promise<string[]> =>
      (await cli.json(['trigger', id, type, ...options])).events.map((event) => event.event_type)
    expect(await types('subscription.renewed')).to.have.members([
      'subscription.updated',
      'subscription.updated',
      'subscription.renewed',
    ])
    expect(await types('transaction.completed')).to.deep.equal(['transaction.completed'])
    expect(await types('webhook.test')).to.deep.equal(['webhook.test'])
  })

  it('trigger produces the further events of an app that asks for them, and says how where it does not', async () => {
    const refused = await cli.run(['trigger', id, 'transaction.flagged', '--json'])
    expect(refused.code).to.equal(1)
    expect(refused.stderr).to.include(`app update ${id} --more-events transaction.flagged`)
    await cli.json(['app', 'update', id, '--more-events', 'all'])
    const types = async (type: string): Promise<string[]> =>
      (await cli.json(['trigger', id, type])).events.map((event) => event.event_type)
    expect(await types('transaction.flagged')).to.deep.equal(['transaction.flagged'])
    expect(await types('transaction.refunded')).to.include('transaction.refunded')
    expect(await types('subscription.expired')).to.include('subscription.expired')
  })

  it('trigger --dry-run tells what an event takes, and changes nothing', async () => {
    await cli.json(['app', 'update', id, '--more-events', 'all'])
    const before = await everyRow()
    for (const type of Object.keys(EVENTS)) {
      const words = ['trigger', id, type, '--email', 'me@example.com']
      const { dry_run, effects } = await cli.preview(words)
      expect([dry_run, effects.at(-1)]).to.deep.equal([true, `the app gets ${type}`])
      expect(await cli.table([...words, '--dry-run'])).to.include(`- the app gets ${type}\n`)
    }
    expect(await everyRow()).to.deep.equal(before)
  })

  it('trigger sends a real reminder to the address that it is given', async () => {
    const inbox = await SmtpInbox.open()
    try {
      const mailing = openCli({
        BILLING_BASE_URL: service.url,
        BILLING_SMTP_URL: inbox.url,
        BILLING_MAIL_FROM: 'pay@shop.example',
      })
      const words = ['trigger', id, 'subscription.renewal_reminder_sent', '--email', 'me@example.com'] as const
      const { events } = await mailing.json(words)
      expect(events.map((event) => event.event_type)).to.deep.equal([
        'subscription.updated',
        'subscription.renewal_reminder_sent',
      ])
      expect(inbox.mails.map(({ recipients }) => recipients)).to.deep.equal([['me@example.com']])
    } finally {
      await inbox.stop()
    }
  })

  it('trigger refuses live apps, unknown events, and a reminder without an address', async () => {
    const live = await anApp(service.ctx, { sandbox: false })
    await cli.expectErrors(
      [1, ['trigger', String(live.app.id), 'subscription.updated', '--dry-run'], 'sandbox apps only'],
      [1, ['trigger', id, 'transaction.flagged', '--dry-run'], '--more-events transaction.flagged'],
      [1, ['trigger', String(live.app.id), 'subscription.updated'], 'sandbox apps only'],
      [2, ['trigger', id, 'subscription.lost'], 'subscription.renewed'],
      [2, ['trigger', id], '<event>'],
      [2, ['trigger', id, 'subscription.renewal_reminder_sent'], 'missing required option --email'],
      [1, ['trigger', id, 'subscription.renewal_reminder_sent', '--email', 'nobody'], 'error: --email: must be'],
    )
  })

  it('listen forwards the events since a time, signed like real deliveries, and shows the responses', async () => {
    await cli.json(['trigger', id, 'subscription.updated'])
    await cli.json(['trigger', id, 'transaction.completed'])
    const listen = [
      'listen',
      id,
      '--since',
      '1h',
      '--events',
      'transaction.*',
      '--count',
      '1',
      '--forward-to',
      receiver.url,
    ] as const
    const event = await cli.json(listen)
    expect(event).to.include({ event_type: 'transaction.completed', app_id: app.app.id })
    expect(event.forwarded).to.include({ http_status: 200, error: null })
    receiver.answer = 500
    expect(await cli.table(listen)).to.match(
      /evt_\d+ {2}transaction\.completed {2}trigger-\w+ {2}http_500 {2}\d+ ms\n$/,
    )
    expect(receiver.received.map(({ eventType, verified }) => [eventType, verified])).to.deep.equal([
      ['transaction.completed', true],
      ['transaction.completed', true],
    ])
    expect(receiver.received.map(({ body, eventId }) => [body.id, eventId])).to.deep.equal([
      [event.id, event.id],
      [event.id, event.id],
    ])
    expect((await cli.json(['webhook', 'show', event.id])).payload).to.include({ id: event.id })
    // The event is still due for its real delivery.
    const { attempts } = (await cli.json(['webhook', 'list', id])).find((row) => row.id === event.id)!
    expect(attempts).to.equal(0)
  })

  it('listen prints each new event on a line until Ctrl-C', async () => {
    const program = spawn(PROGRAM, ['listen', id, '--json'], { env: cli.env, stdio: ['ignore', 'pipe', 'pipe'] })
    const ended = new Promise<number | null>((resolve) => program.once('close', resolve))
    try {
      const lines = createInterface(program.stdout)[Symbol.asyncIterator]()
      const first = lines.next()
      // Nothing tells a script that it listens, so events are triggered until one arrives.
      let seen = null as { done?: boolean; value?: string } | null
      void first.then((line) => (seen = line as { value?: string }))
      const triggered: string[] = []
      while (seen === null) triggered.push((await cli.json(['trigger', id, 'transaction.completed'])).events[0]!.id)
      expect(triggered).to.include((JSON.parse(seen.value ?? '') as Shown<'listen'>).id)
      program.kill('SIGINT')
      expect(await ended).to.equal(0)
    } finally {
      program.kill('SIGKILL')
    }
  })

  it('listen ends once the reader of its output has gone', async () => {
    const program = spawn(PROGRAM, ['listen', id, '--json'], { env: cli.env, stdio: ['ignore', 'pipe', 'ignore'] })
    try {
      program.stdout.once('data', () => program.stdout.destroy())
      const ended = new Promise<number | null>((resolve) => program.once('close', resolve))
      // Nothing tells a script that it listens, so events are triggered until it has ended.
      while (program.exitCode === null) await cli.json(['trigger', id, 'transaction.completed'])
      expect(await ended).to.equal(0)
    } finally {
      program.kill('SIGKILL')
    }
  })

  it('listen names an invalid option, and what an app lacks', async () => {
    const silent = await anApp(service.ctx)
    const local = ['--forward-to', 'http://127.0.0.1:1/hooks']
    await cli.expectErrors(
      [2, ['listen', id, '--since', 'yesterday'], '30m, 36h or 7d'],
      [2, ['listen', id, '--forward-to', 'localhost:3000'], 'http(s)'],
      [2, ['listen', id, '--count', '0'], '--count'],
      [1, ['listen', id, '--events', 'payment.*'], 'error: --events: payment.* matches none of'],
      [1, ['listen', String(silent.app.id), ...local], 'rotate-webhook-secret'],
    )
  })

  it('listen says what it needs instead of starting a database of its own', async () => {
    const home = scratchFolder('no-daemon')
    const alone = openCli({ BILLING_DATABASE_URL: '', BILLING_HOME: home })
    const ran = await alone.run(['listen', id, '--json'])
    expect([ran.code, ran.stdout]).to.deep.equal([1, ''])
    expect(ran.stderr).to.include(home).and.to.include('BILLING_DATABASE_URL').and.to.include('npx paygate listen')
    expect(readdirSync(home)).to.deep.equal([])
  })

  itRunsEveryForm('developer.test.ts')
})
