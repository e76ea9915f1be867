import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Decrypter, generateX25519Identity, identityToRecipient } from 'age-encryption'
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { VARIABLES } from '#config/settings.ts'
import { cardAccounts } from '#providers/card/accounts.ts'
import { inTransaction } from '#commands/transaction.ts'
import { parseKeyring } from '#shared/crypto.ts'
import { formatTimestamp } from '#shared/time.ts'
import { insertProviderEvent } from '#transactions/store.ts'
import { enableMethod } from '../support/operators.ts'
import { realTimeContext, TEST_KEYS, testContext } from '../support/context.ts'
import { anApp, aPlan, aSubscription } from '../support/factories.ts'
import { itRunsEveryForm } from './forms.ts'
import { expectFit, openCli, type Cli } from './run-cli.ts'
import type { Shown } from './shown.ts'
import { onTerminal } from './terminal.ts'
import { shownOn } from '../support/screen.ts'
import { scratchFolder } from '../support/scratch.ts'

describe('the command line: the service itself', () => {
  let cli: Cli

  beforeEach(() => {
    cli = openCli()
  })

  it('doctor reports each failure with its fix, and exits 1', async () => {
    const results = await cli.json(['doctor'], { code: 1 })
    const asTable = await cli.run(['doctor'])
    const failed = results.filter(({ ok }) => !ok)
    expect(failed).not.to.deep.equal([])
    expect(asTable.code).to.equal(1)
    for (const result of results) {
      expect(result).to.have.all.keys('check', 'ok', 'detail', 'fix', 'mend')
      expect(result.mend, 'the older name').to.equal(result.fix)
    }
    for (const { check, fix } of failed) expect(fix, check).to.be.a('string')
    expect(results.map(({ check }) => check)).to.include.members(['settings', 'database'])
    expectFit(asTable.stdout)
    // Each run looks for itself: what depends on the machine's load may differ between the two.
    const shown = (state: string): number => asTable.stdout.match(new RegExp(`^\\S.* ${state}( |$)`, 'gm'))?.length ?? 0
    const warnings = shown('WARN')
    expect(asTable.stdout).to.match(new RegExp(`^${shown('FAIL')} failed, ${warnings} warnings?$`, 'm'))
    expect(asTable.stdout).to.match(/^settings +PASS/m)
    expect(asTable.stderr, 'progress is for terminals').to.equal('error: a check failed: do what its fix says\n')
  })

  it('doctor shows its progress without escape codes, which TERM=dumb would print, and leaves none of it', async () => {
    const { raw } = await onTerminal({ ...cli.env, TERM: 'dumb' }, ['doctor'], [])
    expect(raw).to.include('checking database').and.not.to.include('\u001b')
    const lines = (await shownOn(80, raw)).map(({ text }) => text)
    expect(lines.filter((line) => line.includes('checking'))).to.deep.equal([])
    expect(lines.join('\n')).to.match(/^settings +PASS/m)
  })

  it('doctor examines a service that cannot start', async () => {
    const file = join(scratchFolder('cli'), 'file')
    writeFileSync(file, '')
    const troubles: [Record<string, string>, string, string, string][] = [
      [
        { BILLING_DATABASE_URL: 'mysql://paygate:canary@127.0.0.1:1/paygate' },
        'database',
        'the database cannot be reached at 127.0.0.1:1',
        'BILLING_DATABASE_URL',
      ],
      [{ BILLING_PORT: 'http' }, 'settings', 'BILLING_PORT', 'README'],
      [{ BILLING_ENCRYPTION_KEYS: '', BILLING_HOME: file }, 'keys', `${file} cannot be written`, 'BILLING_HOME'],
    ]
    for (const [settings, check, detail, fix] of troubles) {
      const ran = await openCli(settings).run(['doctor', '--json'])
      expect(ran.code, ran.stderr).to.equal(1)
      const failure = (JSON.parse(ran.stdout) as Shown<'doctor'>).find(({ ok }) => !ok)!
      expect(failure.check).to.equal(check)
      expect(failure.detail).to.include(detail)
      expect(failure.fix).to.include(fix)
      expect(failure.mend, 'the older name of fix').to.equal(failure.fix)
      expect(ran.stdout + ran.stderr).not.to.include('canary')
    }
  })

  it('stats counts subscriptions and revenue', async () => {
    const ctx = realTimeContext()
    const app = await anApp(ctx)
    await aSubscription(ctx, app, await aPlan(ctx, app))
    const { value, text } = await cli.both(['stats', String(app.app.id)])
    expect(value).to.include.all.keys('subscriptions', 'revenue', 'renewals', 'deliveries')
    expect(value.revenue[0]).to.include({ currency: 'VND', received: 99_000 })
    expect(text).to.include('[TEST] Reader')
    expect(value.month).to.deep.include({ gross: { VND: 99_000 }, by_method: { test: { VND: 99_000 } }, new: 1 })
    expect(text).to.match(/^net +₫99,000 +₫0 +₫0$/m)
    const earlier = await cli.both(['stats', String(app.app.id), '--month', '2020-02'])
    expect(earlier.value.month).to.deep.include({ month: '2020-02', gross: {}, new: 0 })
    expect(earlier.text).to.match(/^subscriptions +2020-02 +2020-01 +2019-02$/m)
    expect(await cli.misused(['stats', String(app.app.id), '--test'])).to.include('--test')
    for (const month of ['2020-13', 'october', '2020-1'])
      expect(await cli.misused(['stats', '--month', month])).to.include('2026-10')
  })

  it('key rotate re-encrypts secrets under the first key, so that the old key can go', async () => {
    const ctx = testContext()
    const { app } = await anApp(ctx)
    await enableMethod(ctx, 'tester', app, 'card', { secretKey: 'sk_test_canary', webhookSecret: 'whsec_canary' })
    const next = `next:${Buffer.alloc(32, 9).toString('base64')}`
    const rotating = openCli({ BILLING_ENCRYPTION_KEYS: `${next},${TEST_KEYS}` })
    const rotated = await rotating.json(['key', 'rotate'])
    expect(rotated.rotated).to.be.greaterThan(0)
    expect(await rotating.table(['key', 'rotate'])).to.match(/^0 secrets rotated/m)
    const kept = (await cardAccounts.current({ ...ctx, keyring: parseKeyring(next) }, app.id))?.credentials
    expect(kept).to.deep.equal({ secretKey: 'sk_test_canary', webhookSecret: 'whsec_canary' })
    const { value: log, text } = await cli.both(['audit', 'list', '--limit', '5'])
    expect(log[0]).to.have.all.keys(
      ...['id', 'at', 'actor', 'action', 'app_id', 'sandbox', 'subject', 'before', 'after', 'reason'],
    )
    expect(JSON.stringify(log) + text).not.to.include('canary')
    expect(await cli.misused(['audit', 'list', '--limit', 'x'])).to.include('--limit')
  })

  it('key export encrypts the keys to somebody else than the backups', async () => {
    const [ofBackups, keeper] = [await generateX25519Identity(), await generateX25519Identity()]
    const recipients = { backups: await identityToRecipient(ofBackups), keeper: await identityToRecipient(keeper) }
    const own = openCli({ BILLING_BACKUP_RECIPIENT: recipients.backups })
    const to = join(scratchFolder('keys'), 'keys.age')
    const exporting = ['key', 'export', '--to', to, '--recipient']
    expect(await own.refused([...exporting, recipients.backups])).to.include('need another one')
    const identityFile = join(scratchFolder('keys'), 'identity')
    writeFileSync(identityFile, ofBackups)
    const byIdentity = openCli({ BILLING_BACKUP_IDENTITY: identityFile })
    expect(await byIdentity.refused([...exporting, recipients.backups])).to.include('need another one')
    expect(existsSync(to)).to.equal(false)
    expect(await own.misused(['key', 'export'])).to.include('--recipient')

    expect(await own.json([...exporting, recipients.keeper])).to.deep.equal({ file: to, keys: ['test'] })
    const next = ['key', 'export', '--to', `${to}.2`, '--recipient', recipients.keeper]
    expect(await own.table(next)).to.include('away from the backups')
    expect(statSync(to).mode & 0o777).to.equal(0o600)
    const decrypter = new Decrypter()
    decrypter.addIdentity(keeper)
    expect(await decrypter.decrypt(readFileSync(to), 'text')).to.equal(`${TEST_KEYS}\n`)
  })

  it('key export never replaces a file', async () => {
    const to = join(scratchFolder('keys'), 'keys.age')
    writeFileSync(to, 'kept')
    const recipient = await identityToRecipient(await generateX25519Identity())
    expect(await openCli().refused(['key', 'export', '--to', to, '--recipient', recipient])).to.include(`${to} exists`)
    expect(readFileSync(to, 'utf8')).to.equal('kept')
  })

  it('lists notifications of providers that need attention', async () => {
    const ctx = testContext()
    const { app } = await anApp(ctx)
    await inTransaction(ctx, async (tx) => {
      const common = { eventType: 'checkout.session.completed', appId: app.id, transactionId: null, receivedAt: tx.now }
      await insertProviderEvent(tx, {
        ...common,
        provider: 'stripe',
        eventId: 'evt_1',
        outcome: 'refused',
        note: 'another amount',
      })
      await insertProviderEvent(tx, { ...common, provider: 'stripe', eventId: 'evt_2', outcome: 'applied', note: null })
    })
    const { value, text } = await cli.both(['notification', 'list', '--app', String(app.id)])
    expect(value).to.have.length(1)
    expect(value[0]).to.deep.include({
      received_at: formatTimestamp(ctx.clock.now()),
      provider: 'stripe',
      event_type: 'checkout.session.completed',
      outcome: 'refused',
      app_id: app.id,
      transaction_id: null,
      note: 'another amount',
    })
    expect(text).to.match(/another[^]*amount/)
    const other = String((await anApp(ctx)).app.id)
    expect(await cli.table(['notification', 'list', '--app', other])).to.include('Nothing needs attention.')
    expect(await cli.refused(['notification', 'list', '--app', '999'])).to.include('billing-cli app list')
  })

  it('migrate says when the schema is up to date', async () => {
    const { value, text } = await cli.both(['migrate'])
    expect(value).to.deep.equal({ applied: [] })
    expect(text).to.include('up to date')
  })

  it('migrate shows first what it does to tables with rows; --plan only shows it', async () => {
    const ctx = testContext()
    await anApp(ctx)
    const name = 'PageSettings1795200000023'
    await ctx.db.query('DELETE FROM migrations WHERE name = ?', [name])
    expect(await cli.json(['migrate', '--plan'])).to.deep.equal({
      pending: [{ name, tables: [{ table: 'apps', rows: 1, steps: ['instant'], seconds: 0 }] }],
    })
    const shown = new RegExp(`${name} .*apps .*1 .*instant .*0 s`)
    expect((await cli.table(['migrate', '--plan'])).replace(/\s+/g, ' ')).to.match(shown)
    expect((await cli.table(['migrate'])).replace(/\s+/g, ' ')).to.match(shown)
    expect(await cli.json(['migrate', '--plan'])).to.deep.equal({ pending: [] })
    expect(await cli.table(['migrate', '--plan'])).to.include('up to date')
  })

  it('service install writes the systemd units below a folder, keeps existing files, and previews what it would write', async () => {
    const folder = join(scratchFolder('cli'), 'root')
    const words = ['service', 'install', '--prefix', folder] as const
    const { unit } = await cli.json(['service', 'install', '--print'])
    expect((await cli.run(['service', 'install', '--print'])).stdout).to.equal(`${unit}\n`)
    // A service with ProtectHome and PrivateTmp cannot see the program here, so nothing is written.
    const isHidden = /^\/(home|root|run\/user|tmp|var\/tmp)\//.test(import.meta.dirname)
    if (isHidden) {
      expect(await cli.misused(words)).to.include('cannot see')
      return
    }
    const planned = await cli.preview(words)
    const would = await cli.table([...words, '--dry-run'])
    expect(planned.dry_run).to.equal(true)
    expect(would).to.include('would be written')
    expect(existsSync(folder)).to.equal(false)
    const { files } = await cli.json(words)
    expect(files.map(({ path }) => path)).to.deep.equal(planned.files.map(({ path }) => path))
    for (const { path } of files) expect(existsSync(join(folder, path)), path).to.equal(true)
    const backup = readFileSync(join(folder, 'etc/systemd/system/billing-backup.service'), 'utf8')
    expect(backup, 'does nothing without a recipient').to.include(
      `ExecCondition=/bin/sh -c 'test -n "$BILLING_BACKUP_RECIPIENT"'`,
    )
    expect(backup)
      .to.include('ExecStart=/usr/local/bin/billing-cli backup create\n')
      .and.not.match(/@[A-Z_]+@/)
    expect(readFileSync(join(folder, 'etc/systemd/system/billing-backup.timer'), 'utf8')).to.include('OnCalendar=')
    const token = join(folder, 'etc/paygate/credentials/BILLING_METRICS_TOKEN')
    const made = readFileSync(token, 'utf8')
    expect(made, 'without one watch is refused behind the proxy').to.match(/^[0-9a-f]{64}\n$/)
    expect(statSync(token).mode & 0o777).to.equal(0o600)
    expect(unit).to.match(/^LoadCredential=BILLING_METRICS_TOKEN:/m)
    expect(await cli.table(words)).to.include('is there, and kept')
    expect(readFileSync(token, 'utf8')).to.equal(made)
  })

  it('service install passes every secret setting to the daemon as a credential, if it has a file', async () => {
    const { unit } = await cli.json(['service', 'install', '--print'])
    const secrets = VARIABLES.filter((name) => /_(KEYS?|SECRET|TOKEN)$/.test(name))
    expect(secrets).to.have.length.above(4)
    expect(secrets.filter((name) => !new RegExp(`^#?LoadCredential=${name}:`, 'm').test(unit))).to.deep.equal([])
  })

  it('systemd starts the daemon again until its database is back, however long that takes', async () => {
    const { unit } = await openCli().json(['service', 'install', '--print'])
    expect(unit).to.match(/^Restart=on-failure$/m)
    expect(unit, 'never gives up').to.match(/^StartLimitIntervalSec=0$/m)
  })

  itRunsEveryForm('service.test.ts')
})
