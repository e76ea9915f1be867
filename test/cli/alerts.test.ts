import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { evaluateAlerts, newMemory, READERS } from '#alerts/evaluate-alerts.ts'
import { systemClock } from '#shared/time.ts'
import { realTimeContext } from '../support/context.ts'
import { Receiver, type AlertBody } from '../support/receiver.ts'
import { itRunsEveryForm } from './forms.ts'
import { openCli, type Cli } from './run-cli.ts'

const SECRET = `whsec_${Buffer.alloc(24, 5).toString('base64')}`

describe('alert', () => {
  let cli: Cli
  let receiver: Receiver<AlertBody>

  beforeEach(async () => {
    receiver = await Receiver.start()
    cli = openCli({ BILLING_ALERT_WEBHOOK_URL: receiver.url, BILLING_ALERT_WEBHOOK_SECRET: SECRET })
  })

  afterEach(() => receiver.stop())

  it('lists what is open and what is over, and mutes a kind for a while, which the audit log shows', async () => {
    const ctx = realTimeContext()
    expect(await cli.both(['alert', 'list'])).to.deep.equal({ value: [], text: 'no alerts\n' })
    const full = () =>
      Promise.resolve([{ kind: 'disk_low' as const, subject: '/data', text: 'full', since: systemClock.now() }])
    const quiet = Object.fromEntries(
      Object.keys(READERS).map((kind) => [kind, () => Promise.resolve([])]),
    ) as unknown as typeof READERS
    await evaluateAlerts(ctx, newMemory(systemClock.now()), { ...quiet, disk_low: full })
    const muted = await cli.json(['alert', 'mute', 'disk_low', '--for', '12h'])
    expect(muted.kind).to.equal('disk_low')
    expect(Date.parse(`${muted.muted_until!.replace(' ', 'T')}Z`) - Date.now()).to.be.closeTo(12 * 3_600_000, 60_000)
    const { value, text } = await cli.both(['alert', 'list'])
    expect(Object.keys(value[0]!)).to.deep.equal([
      ...['kind', 'subject', 'opened_at', 'closed_at', 'notified_at', 'muted_until'],
    ])
    expect(value[0]).to.include({ kind: 'disk_low', subject: '/data', closed_at: null, muted_until: muted.muted_until })
    expect(text).to.match(/^open +disk_low +\/data/m)
    const rehearsed = await cli.table(['alert', 'mute', 'disk_low', '--for', '0m', '--dry-run'])
    expect(rehearsed).to.include(`muted_until: ${muted.muted_until} → `)
    expect(await cli.table(['alert', 'mute', 'disk_low', '--for', '0m'])).to.include('disk_low is muted until')
    expect((await cli.json(['alert', 'list']))[0]!.muted_until).to.equal(null)
    expect((await cli.json(['audit', 'list']))[0]).to.include({ action: 'alert.mute', subject: 'alert disk_low' })
    await cli.expectErrors(
      [2, ['alert', 'mute', 'disk_low', '--for', 'long'], '--for'],
      [
        2,
        ['alert', 'mute', 'disk_low', '--for', '4000d'],
        'error: --for must be a duration such as 30m, 36h or 7d, from 0s to 30d',
      ],
      [2, ['alert', 'mute', 'disk_low'], '--for'],
      [2, ['alert', 'mute', 'nothing', '--for', '1h'], 'money_waiting'],
    )
  })

  it('test sends a message by each channel now, and exits 1 where one fails or none is set', async () => {
    expect(await cli.both(['alert', 'test'])).to.deep.equal({
      value: [{ channel: 'webhook', sent: true, error: null }],
      text: 'webhook: sent\n',
    })
    expect(receiver.received.map(({ body }) => body.type)).to.deep.equal(['alert.test', 'alert.test'])
    receiver.answer = 500
    const failed = await cli.run(['alert', 'test'])
    expect([failed.code, failed.stdout]).to.deep.equal([1, 'webhook: failed: the receiver answered 500\n'])
    expect(await openCli().refused(['alert', 'test'])).to.include('BILLING_ALERT_MAIL')
  })

  itRunsEveryForm('alerts.test.ts')
})
