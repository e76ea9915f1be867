import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { enableMethod, openCredentials } from '#apps/methods.ts'
import { parseKeyring } from '#shared/crypto.ts'
import { systemClock } from '#shared/time.ts'
import { TEST_KEYS, testContext } from '../support/context.ts'
import { anApp, aPlan, aSubscription } from '../support/factories.ts'
import { expectFit, openCli } from './run-cli.ts'
import type { Cli } from './run-cli.ts'

describe('the command line: the service itself', function () {
  this.timeout(180_000)
  let cli: Cli

  beforeEach(() => {
    cli = openCli()
  })

  it('examines the service, each fault with its mend, and exits 1 where anything is wrong', async () => {
    const [asJson, asTable] = await Promise.all([cli.run(['doctor', '--json']), cli.run(['doctor'])])
    const findings = JSON.parse(asJson.stdout)
    const wrong = findings.filter(({ ok }: { ok: boolean }) => !ok)
    expect([asJson.code, asTable.code]).to.deep.equal(wrong.length > 0 ? [1, 1] : [0, 0])
    for (const finding of findings) expect(finding).to.have.all.keys('check', 'ok', 'detail', 'mend')
    for (const { check, mend } of wrong) expect(mend, check).to.be.a('string')
    expect(findings.map(({ check }: { check: string }) => check)).to.include.members(['settings', 'database'])
    expectFit(asTable.stdout)
    const away = openCli({ BILLING_DATABASE_URL: 'mysql://paygate:canary@127.0.0.1:1/paygate' })
    const ran = await away.run(['doctor', '--json'])
    expect(ran.code).to.equal(1)
    expect(JSON.parse(ran.stdout).find(({ check }: { check: string }) => check === 'database').ok).to.equal(false)
    expect(ran.stdout + ran.stderr).not.to.include('canary')
  })

  it('tells how the business does', async () => {
    const ctx = { ...testContext(), clock: systemClock }
    const app = await anApp(ctx)
    await aSubscription(ctx, app, await aPlan(ctx, app))
    const { value, text } = await cli.both(['stats', String(app.app.id)])
    expect(value).to.include.all.keys('subscriptions', 'revenue', 'renewals', 'deliveries')
    expect(value.revenue[0]).to.include({ currency: 'VND', received: 99_000 })
    expect(text).to.include('[TEST] Reader')
    expect(await cli.misused(['stats', String(app.app.id), '--test'])).to.include('--test')
  })

  it('puts secrets under the first key, after which the old key may go', async () => {
    const ctx = testContext()
    const { app } = await anApp(ctx)
    await enableMethod(ctx, 'tester', app, 'card', { secretKey: 'sk_test_canary', webhookSecret: 'whsec_canary' })
    const next = `next:${Buffer.alloc(32, 9).toString('base64')}`
    const rotating = openCli({ BILLING_ENCRYPTION_KEYS: `${next},${TEST_KEYS}` })
    const rotated = await rotating.json(['key', 'rotate'])
    expect(rotated.rotated).to.be.greaterThan(0)
    expect(await rotating.table(['key', 'rotate'])).to.match(/^0 secrets rotated/m)
    const kept = await openCredentials({ ...ctx, keyring: parseKeyring(next) }, app.id, 'card')
    expect(kept).to.deep.equal({ secretKey: 'sk_test_canary', webhookSecret: 'whsec_canary' })
    const { value: log, text } = await cli.both(['audit', 'list', '--limit', '5'])
    expect(log[0]).to.have.all.keys(
      ...['id', 'at', 'actor', 'action', 'app_id', 'subject', 'before', 'after', 'reason'],
    )
    expect(JSON.stringify(log) + text).not.to.include('canary')
    expect(await cli.misused(['audit', 'list', '--limit', 'x'])).to.include('--limit')
  })

  it('lists what providers told that needs a look', async () => {
    const { value, text } = await cli.both(['notification', 'list'])
    expect(value).to.deep.equal([])
    expect(text).not.to.equal('')
  })
})
