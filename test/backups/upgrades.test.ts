import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { expect } from 'chai'
import { afterEach, before, beforeEach, describe, it } from 'mocha'
import { backUp } from '#backups/back-up.ts'
import { listBackups, recordVerified } from '#backups/backup-folder.ts'
import { migrateSafely } from '#backups/migrate-safely.ts'
import { rehearseUpgrade } from '#backups/rehearse-upgrade.ts'
import type { Context } from '#context.ts'
import { MIGRATIONS, pendingMigrations, phaseOf, type Migrations } from '#db/migrate.ts'
import { rehearseStart } from '#daemon/serve.ts'
import { checkSchema } from '#doctor/check-database.ts'
import { passed } from '#shared/check-result.ts'
import { messageOf } from '#shared/errors.ts'
import { recordDaemon, recordDaemonStop } from '#backups/daemons/store.ts'
import { insertJobRun } from '#upkeep/job-runs/store.ts'
import { systemClock } from '#shared/time.ts'
import { aMigration } from '../db/a-migration.ts'
import { realTimeContext } from '../support/context.ts'
import { openEmptyDatabase, type TestDb } from '../support/database.ts'
import { refusalOf } from '../support/expect-error.ts'
import { anApp } from '../support/factories.ts'
import { scratchFolder } from '../support/scratch.ts'
import { loadDump } from '../upgrade/dump.ts'

/** The number of the last migration that says neither that it expands nor that it contracts. */
const LAST_UNDECLARED = 35

const EXPAND = aMigration('Wider1795200000901', undefined, {}, 'expand')
const CONTRACT = aMigration('ContractPlans1795200000902', undefined, {}, 'contract')
const FIRST = aMigration('Undeclared1795200000903')
const KNOWN = MIGRATIONS.map(({ name }) => name)

describe('an upgrade', () => {
  let db: TestDb
  let url: string
  let drop: () => Promise<void>
  let ctx: Context
  let identity: string

  before(async () => {
    identity = await generateX25519Identity()
  })

  beforeEach(async () => {
    ;({ db, url, drop } = await openEmptyDatabase('steps'))
    const settings = {
      BILLING_BACKUP_DIR: scratchFolder('backups'),
      BILLING_BACKUP_RECIPIENT: await identityToRecipient(identity),
    }
    ctx = { ...realTimeContext(settings), db }
  })

  afterEach(() => drop())

  const migrate = (
    migrations: { expanding?: Migrations; contracting?: Migrations } = {},
    step: 'expand' | 'contract' = 'expand',
    own: Context = ctx,
  ) => migrateSafely(own, { isContracting: step === 'contract', isWithoutBackup: false, ...migrations })
  const refused = async (work: Promise<unknown>): Promise<string> => (await refusalOf(work)).message
  const inProduction = (): Context => ({ ...ctx, config: { ...ctx.config, env: 'production' } })
  const OURS = { expanding: [...MIGRATIONS, EXPAND], contracting: [CONTRACT] }

  it('expands first, and contracts only when asked', async () => {
    expect(await refused(migrate(OURS, 'contract'))).to.include('run billing-cli migrate first')
    expect(await migrate(OURS)).to.deep.equal([...KNOWN, EXPAND.name])
    expect(await pendingMigrations(db, [CONTRACT])).to.deep.equal([CONTRACT.name])
    expect(await migrate(OURS)).to.deep.equal([])
    expect(await migrate(OURS, 'contract')).to.deep.equal([CONTRACT.name])
    expect(await migrate(OURS, 'contract')).to.deep.equal([])
  })

  it('expands beside a daemon of an older version, and contracts only once none was seen for a minute', async () => {
    await migrate()
    const daemon = { name: 'host:1', version: '0.9.0', migrations: KNOWN }
    await recordDaemon(db, daemon)
    expect(await migrate(OURS)).to.deep.equal([EXPAND.name])
    expect(await refused(migrate(OURS, 'contract'))).to.match(/^the daemon host:1 was seen \d s ago, .*ContractPlans/)
    await recordDaemonStop(db, daemon.name)
    await recordDaemon(db, { ...daemon, name: 'host:2', migrations: [...KNOWN, CONTRACT.name] })
    expect(await migrate(OURS, 'contract'), 'one stopped, one knows it').to.deep.equal([CONTRACT.name])
  })

  it('lets the version before start until it contracts, and then refuses it', async () => {
    const config = { ...ctx.config, databaseUrl: url }
    await migrate(OURS)
    await rehearseStart(config)
    expect(await checkSchema(ctx)).to.deep.equal([passed('schema', 'up to date')])
    await migrate(OURS, 'contract')
    const words = 'a newer version has taken away what this one uses'
    expect(await rehearseStart(config).catch(messageOf)).to.equal(
      `${words} (${CONTRACT.name}): start that version, or restore a backup from before`,
    )
    expect((await checkSchema(ctx))[0]).to.include({ ok: false, detail: `${words}: ${CONTRACT.name}` })
  })

  it('contracts by migrations whose names say so, for versions that do not know them', () => {
    const named = MIGRATIONS.filter(({ name: each }) => each.startsWith('Contract'))
    expect(MIGRATIONS.filter((each) => phaseOf(each) === 'contract')).to.deep.equal(named)
  })

  it('forgets a daemon that was killed after a minute', async () => {
    await migrate()
    await recordDaemon(db, { name: 'host:1', version: '0.9.0', migrations: KNOWN })
    await db.query('UPDATE daemons SET seen_at = UTC_TIMESTAMP(3) - INTERVAL 62 SECOND')
    await migrate(OURS)
    expect(await migrate(OURS, 'contract')).to.deep.equal([CONTRACT.name])
  })

  it('sees a daemon that does not record itself by what its jobs did, and applies none of the first migrations beside it', async () => {
    await migrate()
    const now = systemClock.now()
    await insertJobRun(db, {
      job: 'expire',
      daemon: 'old:1',
      startedAt: now,
      finishedAt: now,
      outcome: 'done',
      summary: {},
    })
    expect(await refused(migrate({ expanding: [...MIGRATIONS, FIRST] }))).to.include('the daemon old:1')
    expect(await migrate(OURS)).to.deep.equal([EXPAND.name])
    expect(await refused(migrate(OURS, 'contract'))).to.include('the daemon old:1')
    await db.query(
      'UPDATE job_runs SET started_at = started_at - INTERVAL 2 MINUTE, finished_at = finished_at - INTERVAL 2 MINUTE',
    )
    expect(await migrate(OURS, 'contract')).to.deep.equal([CONTRACT.name])
  })

  it('in production needs a verified backup of the last day, unless nothing is pending or there is no app', async () => {
    expect(await migrate({}, 'expand', inProduction()), 'an empty database').to.deep.equal(KNOWN)
    await anApp(ctx)
    expect(await migrate({}, 'expand', inProduction()), 'nothing is pending').to.deep.equal([])
    expect(await refused(migrate(OURS, 'expand', inProduction()))).to.include('--without-backup')

    await backUp(ctx, { onProgress: () => undefined })
    expect(await refused(migrate(OURS, 'expand', inProduction()))).to.include('backup verify')
    const [backup] = await listBackups(ctx.config.backup.folder)
    await recordVerified(backup!, systemClock.now())
    const later = { ...inProduction(), clock: { now: () => new Date(Date.now() + 86_400_000) as never } }
    expect(await refused(migrate(OURS, 'expand', later))).to.include('the newest is from')
    expect(await migrate(OURS, 'expand', inProduction())).to.deep.equal([EXPAND.name])
    const options = { isContracting: true, isWithoutBackup: true, ...OURS }
    expect(await migrateSafely(later, options)).to.deep.equal([CONTRACT.name])
  })

  it('is rehearsed on a copy of a backup, each migration with its time', async () => {
    await loadDump(url, 17)
    await backUp(ctx, { onProgress: () => undefined })
    const [backup] = await listBackups(ctx.config.backup.folder)
    const steps: string[] = []
    const rehearsed = await rehearseUpgrade(ctx, backup!, {
      identities: [identity],
      onStep: (step) => steps.push(step),
    })
    expect(rehearsed.migrations.map((each) => each.name)).to.deep.equal(KNOWN.slice(17))
    for (const { seconds } of rehearsed.migrations) expect(seconds).to.be.at.least(0)
    expect(rehearsed).to.deep.include({ ok: true })
    expect(rehearsed.ledger.checked).to.be.greaterThan(10)
    expect(await pendingMigrations(db), 'the database itself').to.deep.equal(KNOWN.slice(17))
    expect(steps).to.include(`applied ${KNOWN.at(-1)}`)
  })

  it('is declared by each migration, but for the first: whether it expands or contracts', () => {
    const silent = MIGRATIONS.filter((each) => phaseOf(each) === null && Number(each.name.slice(-4)) > LAST_UNDECLARED)
    expect(silent.map((each) => each.name)).to.deep.equal([])
  })
})
