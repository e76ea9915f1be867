import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { open, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { finished } from 'node:stream/promises'
import { expect } from 'chai'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { before, describe, it } from 'mocha'
import { backUp } from '#backups/back-up.ts'
import {
  listBackups,
  newestBackup,
  newestVerified,
  recordVerified,
  removeDrafts,
  removeOld,
  type StoredBackup,
} from '#backups/backup-folder.ts'
import { DRAFT, fileSink } from '#backups/sinks.ts'
import { readContents, readMoneyColumns } from '#backups/store.ts'
import { addMs, DAY_MS, formatTimestamp } from '#shared/time.ts'
import { itRunsEveryForm } from './forms.ts'
import { openCli } from './run-cli.ts'
import { testContext } from '../support/context.ts'
import { testDatabase, urlOf } from '../support/database.ts'
import { anApp, aPlan, aSubscription } from '../support/factories.ts'
import { scratchFolder } from '../support/scratch.ts'
import { until } from '../support/until.ts'

describe('the command line: backups', () => {
  let recipient: string

  before(async () => {
    recipient = await identityToRecipient(await generateX25519Identity())
  })

  const settings = (folder: string, others: Readonly<Record<string, string>> = {}) => ({
    BILLING_BACKUP_DIR: folder,
    BILLING_BACKUP_RECIPIENT: recipient,
    ...others,
  })

  it('backup create writes one file for its owner alone, with the rows and sums of every table, whatever the texts in it', async () => {
    const ctx = testContext()
    const app = await anApp(ctx)
    const hostile = "O'Brien\\'s (a),('b');\n-- Dump completed \"x\" ✓ v1.k.x\0"
    await testDatabase().db.query('UPDATE apps SET name = ?', [hostile])
    await aSubscription(ctx, app, await aPlan(ctx, app, { name: "a '(plan)', \\" }), { external_ref: "u'1\\" })
    await aPlan(ctx, app)
    const folder = join(scratchFolder('backups'), 'new')
    const cli = openCli(settings(folder))
    const created = await cli.json(['backup', 'create'])

    const { db } = testDatabase()
    const { rows, sums } = await readContents(db, await readMoneyColumns(db))
    expect(created.rows).to.deep.equal(rows)
    expect(created.sums).to.deep.equal(
      JSON.parse(JSON.stringify(sums, (_, value: unknown) => (typeof value === 'bigint' ? Number(value) : value))),
    )
    expect(created.rows.prices).to.be.greaterThan(1)
    expect(created.sums.prices!.amount).to.be.greaterThan(0)
    expect(dirname(created.file)).to.equal(folder)
    expect(readdirSync(folder)).to.have.lengthOf(1)
    expect(statSync(created.file).mode & 0o777).to.equal(0o600)
    const bytes = readFileSync(created.file)
    expect(bytes).to.have.lengthOf(created.bytes)
    expect(createHash('sha256').update(bytes).digest('hex')).to.equal(created.sha256)
    expect(bytes.includes("O'Brien")).to.equal(false)
    expect(created.schema).to.match(/^[A-Z]\w+\d{13}$/)
    expect(await cli.json(['backup', 'list'])).to.deep.equal([
      {
        file: created.file,
        bytes: created.bytes,
        taken_at: created.taken_at,
        schema: created.schema,
        verified_at: null,
      },
    ])
  })

  it('backup create needs a recipient: without one, and with a wrong one, nothing is written', async () => {
    const folder = scratchFolder('backups')
    const without = openCli({ BILLING_BACKUP_DIR: folder })
    expect(await without.refused(['backup', 'create'])).to.include('BILLING_BACKUP_RECIPIENT')
    expect(await without.refused(['backup', 'create', '--recipient', 'age1nobody'])).to.include('public key of age')
    expect(readdirSync(folder)).to.deep.equal([])
  })

  it('a backup that is given to a command leaves no file, and fails if the command does', async () => {
    const folder = scratchFolder('backups')
    const target = join(scratchFolder('pipe'), 'copy.age')
    const cli = openCli(settings(folder))
    const created = await cli.json(['backup', 'create', '--pipe', `cat > ${target}`])
    expect(created.file).to.equal(null)
    expect(statSync(target).size).to.equal(created.bytes)
    expect(await cli.refused(['backup', 'create', '--pipe', 'cat > /dev/null; exit 3'])).to.include('3')
    expect(await cli.refused(['backup', 'create', '--pipe', 'exit 4'])).to.include('4')
    expect(await cli.refused(['backup', 'create', '--pipe', 'true'])).to.include('before it had read everything')
    expect(readdirSync(folder)).to.deep.equal([])
  })

  it('backup create removes what is older than is kept, but neither the newest nor the newest verified one, and no foreign file', async () => {
    const folder = scratchFolder('backups')
    mkdirSync(join(folder, 'other'))
    const foreign = ['notes.txt', 'other', 'paygate-20200101-000000-000.sql.gz.age']
    for (const name of [foreign[0]!, foreign[2]!]) writeFileSync(join(folder, name), 'mine')
    const ctx = testContext(settings(folder, { BILLING_BACKUP_KEEP: '2d' }))
    const make = () => backUp(ctx, { onProgress: () => undefined })
    for (const day of [1, 2, 3, 4]) {
      await make()
      const [newest] = await listBackups(folder)
      if (day === 2) await recordVerified(newest!, ctx.clock.now())
      if (day < 4) ctx.clock.advance('1d')
    }
    expect((await listBackups(folder)).map(({ takenAt }) => formatTimestamp(takenAt))).to.deep.equal([
      '2026-03-04 10:00:00',
      '2026-03-03 10:00:00',
      '2026-03-02 10:00:00',
    ])
    ctx.clock.advance('30d')
    const { removed } = await make()
    expect(removed).to.have.lengthOf(2)
    const left = await listBackups(folder)
    expect(left.map(({ takenAt }) => formatTimestamp(takenAt))).to.deep.equal([
      '2026-04-03 10:00:00',
      '2026-03-02 10:00:00',
    ])
    const ours = left.flatMap(({ file, verifiedAt }) => [
      basename(file),
      ...(verifiedAt ? [`${basename(file)}.verified.json`] : []),
    ])
    expect(readdirSync(folder).sort()).to.deep.equal([...foreign, ...ours].sort())
  })

  it('two machines that tidy one folder at once remove each file once, and neither fails', async () => {
    const folder = scratchFolder('backups')
    const ctx = testContext(settings(folder))
    for (let made = 0; made < 3; made += 1) {
      await backUp(ctx, { onProgress: () => undefined })
      ctx.clock.advance('1d')
    }
    const drafts = Array.from({ length: 500 }, (_, number) => join(folder, `${DRAFT}${number}`))
    for (const draft of drafts) {
      writeFileSync(draft, 'half of it')
      utimesSync(draft, 0, 0)
    }
    const tidying = removeDrafts(folder, ctx.clock.now())
    await until(() => drafts.some((draft) => !existsSync(draft)))
    for (const draft of drafts) rmSync(draft, { force: true })
    await tidying
    await Promise.all([1, 2].map(() => removeOld(folder, ctx.clock.now(), DAY_MS)))
    expect(readdirSync(folder)).to.have.lengthOf(1)
  })

  it('backup list says that a folder cannot be read, and not that it holds none', async () => {
    const file = join(scratchFolder('backups'), 'file')
    writeFileSync(file, 'no folder')
    expect(await openCli(settings(file)).refused(['backup', 'list'])).to.include(`${file} cannot be read (ENOTDIR)`)
  })

  it('a backup that another program removes while it is looked at does not count as verified', async () => {
    const folder = scratchFolder('backups')
    const at = testContext().clock.now()
    const [kept, removed] = ['kept', 'removed'].map((name) => join(folder, name)) as [string, string]
    for (const file of [kept, removed]) writeFileSync(file, 'backup')
    await recordVerified({ file: kept, bytes: 6, takenAt: addMs(at, -DAY_MS) } as StoredBackup, at)
    // Its record is read until the test has written it.
    execFileSync('mkfifo', [`${removed}.verified.json`])
    const newest = newestVerified(folder, at)
    const record = await open(`${removed}.verified.json`, 'w')
    rmSync(removed)
    await record.writeFile(JSON.stringify({ taken_at: at.toISOString(), bytes: 6, verified_at: at.toISOString() }))
    await record.close()
    expect(await newest).to.deep.equal(addMs(at, -DAY_MS))
  })

  it('a backup of the future, which a wrong clock dated, is neither the newest one nor verified', async () => {
    const identity = await generateX25519Identity()
    const file = join(scratchFolder('identity'), 'identity')
    writeFileSync(file, `${identity}\n`)
    const own = { BILLING_BACKUP_RECIPIENT: await identityToRecipient(identity), BILLING_BACKUP_IDENTITY: file }
    const folder = scratchFolder('backups')
    const ctx = testContext(settings(folder, { ...own, BILLING_BACKUP_KEEP: '2d' }))
    const make = () => backUp(ctx, { onProgress: () => undefined })
    const real = await make()
    const [newest] = await listBackups(folder)
    await recordVerified(newest!, ctx.clock.now())
    const verified = ctx.clock.now()
    ctx.clock.advance('400d')
    const wrong = await make()
    const [future] = await listBackups(folder)
    await recordVerified(future!, ctx.clock.now())
    ctx.clock.advanceMs(-399 * DAY_MS)
    expect(await newestVerified(folder, ctx.clock.now())).to.deep.equal(verified)
    expect((await newestBackup(folder, ctx.clock.now()))?.file).to.equal(real.file)
    ctx.clock.advance('9d')
    const { file: latest, removed } = await make()
    expect(removed, 'the newest verified one').to.deep.equal([])
    expect((await newestBackup(folder, ctx.clock.now()))?.file).to.equal(latest)
    expect((await listBackups(folder)).map((each) => each.file)).to.deep.equal([wrong.file, latest, real.file])
  })

  it('a disk that is full is named, with what to do', async () => {
    const folder = scratchFolder('backups')
    const sink = await fileSink(join(folder, 'backup'))
    await finished(sink.stream.end('half of it'))
    const full = await writeFile('/dev/full', 'x').catch((error: unknown) => error)
    const thrown = (await sink.abandon(full)) as Error
    expect(thrown.message).to.equal(`the disk of ${folder} is full: make room there, or give --to another place`)
    expect(readdirSync(folder)).to.deep.equal([])
  })

  it('people see the file and its rows', async () => {
    const cli = openCli(settings(scratchFolder('backups')))
    expect(await cli.table(['backup', 'list'])).to.include('no backup in')
    const created = await cli.table(['backup', 'create'])
    expect(created.replaceAll(/\s/g, '')).to.match(/^file\/.*\.sql\.gz\.agebytes/)
    expect(created).to.match(/^Next: billing-cli backup verify$/m)
    const elsewhere = await cli.table(['backup', 'create', '--to', scratchFolder('elsewhere')])
    expect(elsewhere).to.match(/^Next: billing-cli backup verify FILE$/m)
    expect(await cli.table(['backup', 'list'])).to.match(/^paygate-\d{8}-\d{6}-\d{3}\.sql\.gz\.age /m)
  })

  it('people see that a backup is good, and what to do once it is restored', async () => {
    const identity = await generateX25519Identity()
    const file = join(scratchFolder('identity'), 'identity')
    writeFileSync(file, identity)
    const folder = scratchFolder('backups')
    const own = { BILLING_BACKUP_RECIPIENT: await identityToRecipient(identity), BILLING_BACKUP_IDENTITY: file }
    const cli = openCli({ ...own, BILLING_BACKUP_DIR: folder })
    expect(await cli.refused(['backup', 'verify'])).to.include('backup create')
    const created = await cli.json(['backup', 'create'])
    expect(await cli.table(['backup', 'verify'])).to.match(/^result +good$/m)
    // A damaged one needs no server to be told apart from a good one.
    const damaged = join(scratchFolder('damaged'), basename(created.file))
    writeFileSync(damaged, readFileSync(created.file).subarray(0, -1))
    expect(await cli.json(['backup', 'verify', damaged], { code: 1 })).to.include({ ok: false })

    const rehearsed = await cli.both(['upgrade', '--rehearse'])
    expect(rehearsed.value).to.deep.equal({ migrations: [], ledger: { checked: 0, faults: [] }, ok: true })
    expect(rehearsed.text).to.include('The upgrade can be made')
    expect(await cli.misused(['upgrade'])).to.include('--rehearse')

    const { db, name, socketPath } = testDatabase()
    const restore = [
      'backup',
      'restore',
      basename(created.file),
      '--into',
      urlOf(socketPath, `${name}_restored`),
    ] as const
    await db.query(`CREATE DATABASE ${name}_restored`)
    try {
      expect(await cli.json([...restore, '--dry-run'])).to.include({ dry_run: true, taken_at: created.taken_at })
      expect(await cli.table([...restore, '--dry-run'])).to.include('can be restored')
      expect(await cli.table(restore)).to.match(/rows and sums agree[\s\S]*billing-cli reconcile/)
      await db.query(`DROP DATABASE ${name}_restored`)
      await db.query(`CREATE DATABASE ${name}_restored`)
      expect((await cli.json(restore)).next).to.be.an('array')
    } finally {
      await db.query(`DROP DATABASE ${name}_restored`)
    }
  })

  itRunsEveryForm('backups.test.ts')
})
