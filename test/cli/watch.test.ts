import { createServer } from 'node:http'
import { stripVTControlCharacters } from 'node:util'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { withSandbox } from '#cli/session.ts'
import { drawWatch } from '#cli/watch-screen.ts'
import type { Context } from '#context.ts'
import { systemClock } from '#shared/time.ts'
import { sumOf, Watch } from '#support/read-watch.ts'
import { lossyServer } from '../db/lossy-server.ts'
import { realTimeContext } from '../support/context.ts'
import { testDatabase, urlOf } from '../support/database.ts'
import { listen, stopServer } from '../support/http-server.ts'
import { shownOn } from '../support/screen.ts'
import { itRunsEveryForm } from './forms.ts'
import { expectFit, openCli } from './run-cli.ts'
import { aBusyService } from './states.ts'
import { onTerminal } from './terminal.ts'

const SCREEN_ENTERED = '\u001b[?1049h'
const SCREEN_LEFT = '\u001b[?1049l'

describe('watch', () => {
  let ctx: Context
  const stops: (() => Promise<unknown>)[] = []

  beforeEach(async () => {
    ctx = realTimeContext()
    await aBusyService(ctx)
  })

  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop()
  })

  /** A daemon that has answered ten more requests at each scrape. Returns its port. */
  async function aDaemon(token: string | null = null): Promise<number> {
    let requests = 0
    const server = createServer((request, response) => {
      requests += 10
      response.statusCode = token !== null && request.headers.authorization !== `Bearer ${token}` ? 401 : 200
      response.end(
        `paygate_http_request_seconds_count{route="/a",status="200"} ${requests}\npaygate_http_request_seconds_count{route="/b"} 5\npaygate_webhook_deliveries_total{outcome="delivered"} ${requests / 2}\n`,
      )
    })
    stops.push(() => stopServer(server))
    return listen(server)
  }

  it('counts requests and deliveries per second by the daemon’s own counters, with its token', async () => {
    let now = systemClock.now()
    const port = await aDaemon('a-metrics-token-0123')
    const config = { ...ctx.config, host: '127.0.0.1', port, metricsToken: 'a-metrics-token-0123' }
    const watch = new Watch({ ...ctx, config, clock: { now: () => now } })
    expect(await watch.read()).to.include({ requests_per_second: null, deliveries_per_second: null })
    now = new Date(now.getTime() + 2000) as typeof now
    const second = await watch.read()
    expect(second.daemon).to.include({ answers: true, error: null })
    // Ten more in two seconds, less the scrape itself.
    expect(second).to.include({ requests_per_second: 4.5, deliveries_per_second: 2.5 })
    const refused = new Watch({ ...ctx, config: { ...config, metricsToken: null } })
    const { daemon } = await refused.read()
    expect(daemon).to.include({ answers: false, error: `http://127.0.0.1:${port}/metrics answered 401` })
    expect(daemon.fix).to.include('BILLING_METRICS_TOKEN')
    expect(sumOf('a_b{x="1 2"} 3\na_b 4\na_bc 9\n', 'a_b')).to.equal(7)
  })

  it('fits every size of a screen, and shows what needs review, without a daemon too', async () => {
    const read = await new Watch({ ...ctx, config: { ...ctx.config, host: '127.0.0.1', port: 1 } }).read()
    const reading = { ...read, payments: await withSandbox(ctx, read.payments) }
    expect(reading.daemon.answers).to.equal(false)
    expect(reading.payments.length).to.be.greaterThan(3)
    for (const [columns, rows] of [
      [80, 24],
      [60, 20],
      [120, 40],
      [200, 50],
    ] as const) {
      const lines = drawWatch(reading, { columns, rows })
      expect(lines.length).to.be.at.most(rows)
      for (const line of lines) expect(line.length, line).to.be.at.most(columns)
      const shown = lines.join('\n')
      for (const word of [
        'Paygate',
        'q quits',
        'daemon',
        'no answer',
        '127.0.0.1:1/metrics',
        'outbox',
        'underpaid',
        '₫99,000',
      ])
        expect(shown, `${columns}×${rows}`).to.include(word)
    }
  })

  it('says of the part of a payment that an operator dismissed that it was received, not that it completed', async () => {
    const lineOf = async (reason: string | null) => {
      const read = await new Watch({ ...ctx, config: { ...ctx.config, host: '127.0.0.1', port: 1 } }).read()
      const payments = (await withSandbox(ctx, read.payments)).filter(
        (row) => row.transaction_id === part.transaction_id,
      )
      expect(payments.map((row) => row.reason)).to.deep.equal([reason])
      return drawWatch({ ...read, payments }, { columns: 120, rows: 40 }).at(-1)
    }
    const part = (await openCli().json(['payment', 'list'])).find((row) => row.reason === 'underpaid')!
    expect(await lineOf('underpaid')).to.match(/underpaid *$/)
    const dismiss = ['transaction', 'resolve', String(part.transaction_id), '--action', 'dismiss', '--note', 'a gift']
    await openCli().json(dismiss)
    expect(await lineOf(null)).to.match(/received *$/)
  })

  it('redraws in place on a terminal, and restores the previous screen when q is pressed', async () => {
    const port = await aDaemon()
    const { env } = openCli({ BILLING_HOST: '127.0.0.1', BILLING_PORT: String(port) })
    const session = await onTerminal(
      env,
      ['watch'],
      [
        ['per second', 'x'],
        ['q quits', 'q'],
      ],
    )
    expect([session.code, session.left], session.text).to.deep.equal([0, []])
    expect(session.raw).to.include(SCREEN_ENTERED)
    expect(session.raw.indexOf(SCREEN_LEFT)).to.be.greaterThan(session.raw.lastIndexOf('Paygate'))
    expect((await shownOn(80, session.raw, 24)).filter(({ text }) => text !== '')).to.deep.equal([])
    const beforeItEnded = session.raw.slice(0, session.raw.indexOf(SCREEN_LEFT))
    const lines = (await shownOn(80, beforeItEnded, 24)).map(({ text }) => text)
    expect(lines[0]).to.match(/^Paygate .* q quits$/)
    expect(
      lines.filter((text) => text.startsWith('Paygate')),
      'two frames, one screen',
    ).to.have.length(1)
    expect(lines).to.have.length(24)
  })

  it('shows above the last reading that the database is unreachable, and still quits', async () => {
    const { socketPath, name } = testDatabase()
    const line = await lossyServer(socketPath)
    stops.push(() => line.close())
    let readings = 0
    line.fateOf = (statement) => {
      // Once in each reading.
      if (statement.includes('VERSION()')) readings += 1
      return readings < 2 ? 'pass' : 'lost'
    }
    const { env } = openCli({ BILLING_DATABASE_URL: urlOf(line.socketPath, name), BILLING_PORT: '1' })
    const session = await onTerminal(env, ['watch'], [['as of', 'q']])
    expect([session.code, session.left], session.text).to.deep.equal([0, []])
    const [first = '', second = ''] = session.raw
      .split('\u001b[H')
      .slice(1)
      .map((frame) => stripVTControlCharacters(frame))
    expect(first).to.match(/^Paygate {2}20.* UTC {2}q quits/)
    expect(second).to.match(/^Paygate {2}q quits[^]*failed +.*[^]*as of 20.* UTC[^]*outbox/)
  })

  it('prints one reading for scripts, and needs a terminal otherwise', async () => {
    const cli = openCli({ BILLING_HOST: '127.0.0.1', BILLING_PORT: String(await aDaemon()) })
    const reading = await cli.json(['watch', '--once'])
    expect(reading).to.have.all.keys(
      ...['at', 'daemon', 'requests_per_second', 'deliveries_per_second', 'outbox', 'reminders_late_seconds'],
      ...['realtime_failed', 'flagged', 'jobs', 'payments'],
    )
    expect(reading.requests_per_second).to.be.greaterThan(0)
    expect(reading.payments.some(({ sandbox }: { sandbox: boolean }) => sandbox)).to.equal(true)
    const ran = await cli.run(['watch', '--once'])
    expect(ran.stdout)
      .to.match(/daemon +answers/)
      .and.match(/^\d\d:\d\d +\[TEST\] \d+ +user-1 /m)
    expectFit(ran.stdout)
    expect(await cli.misused(['watch'])).to.include('watch --once --json')
  })

  itRunsEveryForm('watch.test.ts')
})
