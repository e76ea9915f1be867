import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, existsSync, readdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { gunzipSync, gzipSync } from 'node:zlib'
import { Decrypter, generateX25519Identity, identityToRecipient } from 'age-encryption'
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { alertMessages, type AlertMessage } from '#alerts/store.ts'
import { backUp } from '#backups/back-up.ts'
import { listBackups, recordVerified } from '#backups/backup-folder.ts'
import { recordDaemon, recordDaemonStop } from '#backups/daemons/store.ts'
import { restoreBackup } from '#backups/restore-backup.ts'
import { encrypted } from '#backups/encryption.ts'
import { manifestLine } from '#backups/manifest.ts'
import { hasApps, isEmptyDatabase, type Contents } from '#backups/store.ts'
import { verifyBackup } from '#backups/verify-backup.ts'
import { openDatabase, type Database } from '#db/connect.ts'
import { isHalfRestored, markHalfRestored } from '#db/unfinished-restore.ts'
import { verifyLedger } from '#ledger/verify-ledger.ts'
import { UNTRIED } from '#mail/mail-columns.ts'
import { systemClock, type RealTime } from '#shared/time.ts'
import { receipts } from '#transactions/receipts/store.ts'
import { errorIn, openCli, type Cli } from '../cli/run-cli.ts'
import { lossyServer } from '../db/lossy-server.ts'
import { realTimeContext } from '../support/context.ts'
import { CLIENT_PROGRAM } from '../support/database-server.ts'
import { openTestDb, testDatabase, urlOf } from '../support/database.ts'
import { refusalOf } from '../support/expect-error.ts'
import { aCustomer, anApp, aPlan, aPromotion, aSubscription, paid, priceId } from '../support/factories.ts'
import { scratchFolder } from '../support/scratch.ts'
import { loadDump } from '../upgrade/dump.ts'

describe('a backup', () => {
  let folder: string
  let identityFile: string
  let settings: Readonly<Record<string, string>>
  let cli: Cli
  let target: string

  before(async () => {
    const identity = await generateX25519Identity()
    identityFile = join(scratchFolder('identity'), 'identity')
    writeFileSync(identityFile, `# created: today\n# public key: …\n${identity}\n`)
    settings = {
      BILLING_BACKUP_RECIPIENT: await identityToRecipient(identity),
      BILLING_BACKUP_IDENTITY: identityFile,
    }
  })

  beforeEach(async () => {
    folder = scratchFolder('backups')
    cli = openCli({ ...settings, BILLING_BACKUP_DIR: folder })
    const { db, name } = testDatabase()
    target = `${name}_restored`
    await db.query(`DROP DATABASE IF EXISTS ${target}`)
    await db.query(`CREATE DATABASE ${target}`)
  })

  after(() => testDatabase().db.query(`DROP DATABASE IF EXISTS ${testDatabase().name}_restored`))

  const targetUrl = () => urlOf(testDatabase().socketPath, target)

  /** As after a verification, which takes a server of its own. */
  async function callVerified(): Promise<void> {
    const [backup] = await listBackups(folder)
    await recordVerified(backup!, systemClock.now())
  }

  async function someData(): Promise<void> {
    const ctx = realTimeContext()
    const app = await anApp(ctx, { name: 'Đọc sách' })
    const plan = await aPlan(ctx, app)
    for (const user of ['user-1', 'user-2']) await aSubscription(ctx, app, plan, { external_ref: user })
    await paid(ctx, app, { price_id: priceId(plan), external_ref: 'user-1' })
  }

  it('is verified on a private server, restored elsewhere with the same rows and sums, and its ledger is clean there', async () => {
    await someData()
    const created = await cli.json(['backup', 'create'])
    const verified = await cli.json(['backup', 'verify'])
    expect(verified).to.deep.include({ file: created.file, ok: true, rows_equal: true, sums_equal: true })
    expect(verified.ledger).to.deep.equal({ checked: 2, faults: [] })
    expect(verified.seconds).to.be.greaterThan(0)
    const [listed] = await cli.json(['backup', 'list'])
    expect(listed!.verified_at).to.match(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/)

    const restored = await cli.json(['backup', 'restore', created.file, '--into', targetUrl()])
    expect(restored).to.deep.include({ rows_equal: true, sums_equal: true, keys: ['test'], missing_keys: [] })
    expect(restored.next.join(' ')).to.include('billing-cli reconcile')
    const { db, close } = await openDatabase({ databaseUrl: targetUrl(), home: '' })
    try {
      expect(await verifyLedger({ ...realTimeContext(), db }, null)).to.deep.equal({
        checked: 2,
        faults: [],
      })
    } finally {
      await close()
    }
    const [{ id }]: [{ id: string }] = await testDatabase().db.query(`SELECT MAX(id) AS id FROM ${target}.events`)
    await testDatabase().db.query(
      `INSERT INTO ${target}.events (${await columnsOf('events')}) SELECT ${await columnsOf('events')} FROM ${target}.events LIMIT 1`,
    )
    const [{ next }]: [{ next: number }] = await testDatabase().db.query(`SELECT MAX(id) AS next FROM ${target}.events`)
    expect(next, 'ids that were given out after the backup are not given out again').to.be.greaterThan(
      Number(id) + 1_000_000,
    )
  })

  it('leaves a gap behind each id that is known outside, also where the backup has none yet', async () => {
    const app = await anApp(realTimeContext())
    const sold = await aPlan(realTimeContext(), app)
    const { file } = await cli.json(['backup', 'create'])
    await cli.json(['backup', 'restore', file, '--into', targetUrl()])
    const { db, close } = await openDatabase({ databaseUrl: targetUrl(), home: '' })
    try {
      const restored = { ...realTimeContext(), db }
      const plan = await aPlan(restored, app)
      expect(plan.id).to.be.greaterThan(sold.id + 1_000_000)
      expect(plan.prices[0]!.id).to.be.greaterThan(sold.prices[0]!.id + 1_000_000)
      expect((await aPromotion(restored, app)).id).to.be.greaterThan(1_000_000)
      expect((await aCustomer(restored, app)).id).to.be.greaterThan(1_000_000)
      // The ids by which receivers know copies of a mail, and of an alert.
      const waiting = {
        appId: app.app.id,
        transactionId: 1,
        kind: 'part',
        amount: 1,
        total: 1,
        status: 'sent',
      } as const
      const times = { retryAt: systemClock.now(), createdAt: systemClock.now() }
      expect(await db.insert(receipts, { ...UNTRIED, ...waiting, ...times })).to.be.greaterThan(1_000_000)
      expect(await db.insert(alertMessages, anAlertMessage(systemClock.now()))).to.be.greaterThan(1_000_000)
    } finally {
      await close()
    }
  })

  function anAlertMessage(at: RealTime): Omit<AlertMessage, 'id'> {
    const times = { since: at, createdAt: at, nextTryAt: at, sentAt: null }
    const words = { channel: 'webhook', type: 'alert.opened', kind: 'job', subject: 'a', text: 'b' } as const
    return { alertId: null, attempts: 0, lastError: null, ...words, ...times }
  }

  async function columnsOf(table: string): Promise<string> {
    const rows: { name: string }[] = await testDatabase().db.query(
      `SELECT column_name AS name FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ? AND column_name <> 'id'`,
      [table],
    )
    return rows.map(({ name }) => name).join(', ')
  }

  it('opens with age, zcat and the database’s own client alone, and holds no key', async () => {
    await someData()
    const { file } = await cli.json(['backup', 'create'])
    const decrypter = new Decrypter()
    decrypter.addIdentity(readFileSync(identityFile, 'utf8').trim().split('\n').at(-1)!)
    const sql = gunzipSync(await decrypter.decrypt(readFileSync(file)))
    execFileSync(CLIENT_PROGRAM, [`--socket=${testDatabase().socketPath}`, '--user=root', target], { input: sql })
    const [{ name }]: [{ name: string }] = await testDatabase().db.query(`SELECT name FROM ${target}.apps`)
    expect(name).to.equal('Đọc sách')
    const manifest = JSON.parse(sql.toString('utf8').split('-- paygate-manifest ')[1]!) as { keys: string[] }
    expect(manifest.keys).to.deep.equal(['test'])
    expect(sql.includes(Buffer.alloc(32, 7).toString('base64'))).to.equal(false)
  })

  it('that was cut short or changed is found out before a row is restored, and is no longer called verified', async () => {
    await someData()
    const { file } = await cli.json(['backup', 'create'])
    await callVerified()
    const whole = readFileSync(file)
    const expectDamaged = async () => {
      expect(await cli.refused(['backup', 'restore', file, '--into', targetUrl()])).to.include('is damaged')
      expect(await testDatabase().db.query(`SHOW TABLES FROM ${target}`)).to.deep.equal([])
    }
    truncateSync(file, Math.floor(whole.length / 2))
    await expectDamaged()
    for (const damage of [
      () => truncateSync(file, whole.length - 1),
      () => writeFileSync(file, Buffer.from(whole.map((byte, at) => (at === whole.length - 40 ? byte ^ 1 : byte)))),
    ]) {
      writeFileSync(file, whole)
      damage()
      const ran = await cli.run(['backup', 'verify', file, '--json'])
      expect(ran.code).to.equal(1)
      expect(JSON.parse(ran.stdout)).to.deep.include({ file, ok: false, rows_equal: false, sums_equal: false })
      expect(errorIn(ran).message).to.include('is damaged')
      await expectDamaged()
    }
    writeFileSync(file, whole)
    expect((await cli.json(['backup', 'list']))[0]!.verified_at).to.equal(null)
  })

  it('of another key, and a file that is none, are refused; a wrong key leaves a verified one verified', async () => {
    const { file } = await cli.json(['backup', 'create'])
    await callVerified()
    const other = join(scratchFolder('identity'), 'other')
    writeFileSync(other, await generateX25519Identity())
    for (const words of [
      ['verify', file],
      ['restore', file, '--into', targetUrl()],
    ])
      expect(await cli.refused(['backup', ...words, '--identity', other])).to.include('encrypted to another key')
    const stranger = join(folder, 'notes.txt')
    writeFileSync(stranger, 'notes')
    expect(await cli.refused(['backup', 'verify', stranger])).to.include('no backup of Paygate')
    expect(await cli.refused(['backup', 'verify', 'nothing.age'])).to.include('no file nothing.age')
    expect(await cli.refused(['backup', 'verify', '--identity', stranger])).to.include('no private key of age')
    expect((await cli.json(['backup', 'list']))[0]!.verified_at).not.to.equal(null)
  })

  it('that somebody else has made, who needs only the public key, runs no command, reads no file and writes none', async () => {
    const written = join(folder, 'written')
    const attacks = {
      'Unknown command': `\\! touch ${written}`,
      'local infile|LOCAL_INFILE|Loading local data': `CREATE TABLE apps (id TEXT);\nLOAD DATA LOCAL INFILE '${identityFile}' INTO TABLE apps;`,
      'Access denied': `SET GLOBAL general_log_file = '${written}';\nSET GLOBAL general_log = ON;`,
    }
    const own = openCli({ ...settings, BILLING_HOME: scratchFolder('home'), BILLING_DATABASE_URL: '' })
    for (const [refusal, sql] of Object.entries(attacks)) {
      const ran = await own.run(['backup', 'restore', await forged(sql), '--into', 'embedded-service'])
      expect(ran.code, sql).to.equal(1)
      expect(ran.stderr).to.match(new RegExp(refusal))
    }
    const verified = await own.run(['backup', 'verify', await forged(attacks['Access denied'])])
    expect(verified.code).to.equal(1)
    expect(verified.stderr).to.include('Access denied')
    const column = `id\`), 0) INTO OUTFILE '${written}' FROM plans -- `
    const named = await forged('CREATE TABLE plans (id BIGINT);', { plans: { [column]: 0n } })
    expect((await own.run(['backup', 'restore', named, '--into', 'embedded-service'])).stderr).to.include(
      'schema is not',
    )
    expect(existsSync(written)).to.equal(false)
  })

  async function forged(sql: string, sums: Contents['sums'] = {}): Promise<string> {
    const family = CLIENT_PROGRAM === 'mariadb' ? 'MariaDB' : 'MySQL'
    const label = { takenAt: systemClock.now(), schema: 'none', family } as const
    const end = manifestLine({ taken_at: '', schema: '', server: '', keys: [], rows: {}, sums })
    const dump = Readable.from([gzipSync(`${sql}\n${end}`)])
    const file = join(folder, 'forged')
    writeFileSync(file, await buffer(encrypted(dump, settings['BILLING_BACKUP_RECIPIENT']!, label)))
    return file
  }

  it('that cannot be read is not said to be none', async () => {
    // Nobody can open a socket as a file, not even root.
    const file = join(folder, 'paygate-20260101-000000-000.sql.gz.age')
    const socket = createServer().listen(file)
    await once(socket, 'listening')
    try {
      expect(await cli.refused(['backup', 'verify', file])).to.include(`${file} cannot be opened`)
    } finally {
      socket.close()
    }
  })

  it('is restored into the service’s own server, over tables without an app, while no daemon runs', async () => {
    await someData()
    const { file, rows } = await cli.json(['backup', 'create'])
    const home = scratchFolder('home')
    const own = { home, databaseUrl: null }
    const inOwn = async <T>(work: (db: Database) => Promise<T>): Promise<T> => {
      const { db, close } = await openDatabase(own, { poolSize: 1 })
      return work(db).finally(close)
    }
    const service = openCli({ ...settings, BILLING_BACKUP_DIR: folder, BILLING_HOME: home, BILLING_DATABASE_URL: '' })
    const restore = ['backup', 'restore', file, '--into', 'embedded-service'] as const
    const daemon = { name: 'host:1', version: '0.1.0', migrations: [] }
    await inOwn((db) => recordDaemon(db, daemon))
    expect(await service.refused(restore)).to.match(/the daemon host:1 was seen \d s ago: stop it/)
    await inOwn((db) => recordDaemonStop(db, daemon.name))
    expect((await service.preview(restore)).rows).to.deep.equal(rows)
    expect(await service.json(restore)).to.include({ rows_equal: true, sums_equal: true })
    expect(await inOwn(hasApps)).to.equal(true)
    expect(await service.refused(restore)).to.include('has an app')
    expect(await cli.misused(restore)).to.include('does not use embedded-service')
  })

  it('into the service’s own server leaves nothing of itself where it fails', async () => {
    // More than one piece of the encryption, at the end of the dump.
    await testDatabase().db.query('CREATE TABLE zz_noise (content MEDIUMTEXT)')
    const noise = randomBytes(200_000).toString('hex')
    await testDatabase().db.query('INSERT INTO zz_noise VALUES (?)', [noise])
    const { file, bytes } = await cli.json(['backup', 'create'])
    await testDatabase().db.query('DROP TABLE zz_noise')
    const [backup] = await listBackups(folder)
    const own = { home: scratchFolder('home') }
    const { db, close } = await openDatabase({ ...own, databaseUrl: null }, { poolSize: 1, keepsSchema: true })
    try {
      const identities = [readFileSync(identityFile, 'utf8').trim().split('\n').at(-1)!]
      let loaded = 0
      const onStep = (text: string) => {
        if (text === 'reading 100 %') truncateSync(file, bytes - 1000)
        if (text.startsWith('restoring')) loaded += 1
      }
      expect((await refusalOf(restoreBackup(backup!, own, { identities, onStep }))).message).to.include('is damaged')
      expect(loaded).to.be.greaterThan(1)
      expect(await isEmptyDatabase(db)).to.equal(true)
    } finally {
      await close()
    }
  })

  it('that was restored into the service’s own server only in part is not served, and is restored again', async () => {
    await someData()
    const { file } = await cli.json(['backup', 'create'])
    const [backup] = await listBackups(folder)
    const own = { home: scratchFolder('home') }
    const { db, close } = await openDatabase({ ...own, databaseUrl: null }, { poolSize: 1, keepsSchema: true })
    try {
      const identities = [readFileSync(identityFile, 'utf8').trim().split('\n').at(-1)!]
      const marks: Promise<boolean>[] = []
      const onStep = (text: string) => {
        if (text.startsWith('restoring')) marks.push(isHalfRestored(db))
      }
      await restoreBackup(backup!, own, { identities, onStep })
      expect(await Promise.all(marks))
        .to.include(true)
        .and.not.include(false)
      expect(await isHalfRestored(db)).to.equal(false)
      // As a program that is killed in the middle leaves it.
      await markHalfRestored(db)
      await db.run('DROP TABLE payments')
      const service = openCli({ ...settings, BILLING_HOME: own.home, BILLING_DATABASE_URL: '' })
      const restore = ['backup', 'restore', file, '--into', 'embedded-service'] as const
      for (const words of [['app', 'list'], ['migrate'], ['backup', 'create']] as const)
        expect(await service.refused(words), words.join(' ')).to.include('run billing-cli backup restore')
      expect(await service.json(restore)).to.include({ rows_equal: true, sums_equal: true })
      expect(await service.json(['app', 'list'])).to.have.lengthOf(1)
    } finally {
      await close()
    }
  })

  it('that was restored only in part is not served and not restored over, until its database is made anew', async () => {
    await someData()
    const { file } = await cli.json(['backup', 'create'])
    const restore = ['backup', 'restore', file, '--into', targetUrl()] as const
    await cli.json(restore)
    const restored = await openTestDb(targetUrl())
    try {
      expect(await restored.db.query(`SHOW TABLES LIKE 'unfinished_restore'`)).to.deep.equal([])
      // As a program that is killed in the middle leaves it.
      await markHalfRestored(restored.db)
    } finally {
      await restored.close()
    }
    const service = openCli({ ...settings, BILLING_BACKUP_DIR: folder, BILLING_DATABASE_URL: targetUrl() })
    for (const words of [['app', 'list'], ['migrate'], ['backup', 'create']] as const)
      expect(await service.refused(words), words.join(' ')).to.include('create the database anew')
    const doctor = await service.run(['doctor', '--json'])
    expect(doctor.code).to.equal(1)
    expect(doctor.stdout).to.include('only in part; if no restore is running, create').and.include('do what it says')
    expect(await cli.refused(restore)).to.include('holds a part of a backup: create it anew')
  })

  it('is not restored over a table', async () => {
    const { file } = await cli.json(['backup', 'create'])
    await testDatabase().db.query(`CREATE TABLE ${target}.mine (id INT)`)
    expect(await cli.refused(['backup', 'restore', file, '--into', targetUrl()])).to.include('is not empty')
    expect(await testDatabase().db.query(`SHOW TABLES FROM ${target}`)).to.have.lengthOf(1)
  })

  it('of a user with a password is made and restored without the password in any argument', async () => {
    const { db, socketPath, name } = testDatabase()
    const password = `p"a'ss\\ #;%${'x'.repeat(8)}`
    await db.query(`CREATE USER IF NOT EXISTS 'backup-test'@'localhost' IDENTIFIED BY ${escaped(password)}`)
    await db.query(
      `GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX ON ${name}.* TO 'backup-test'@'localhost'`,
    )
    await db.query(
      `GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX ON ${target}.* TO 'backup-test'@'localhost'`,
    )
    try {
      const socket = `socketPath=${encodeURIComponent(socketPath)}`
      const url = `mysql://backup-test:${encodeURIComponent(password)}@localhost/${name}?${socket}`
      const limited = { ...settings, BILLING_BACKUP_DIR: folder }
      const { file } = await openCli({ ...limited, BILLING_DATABASE_URL: url }).json(['backup', 'create'])
      const into = `mysql://backup-test@localhost/${target}?${socket}`
      const withPassword = openCli({ ...limited, BILLING_CLI_DATABASE_PASSWORD: password })
      const denied = await cli.refused(['backup', 'restore', file, '--into', into])
      expect(denied)
        .to.include('ER_ACCESS_DENIED')
        .and.to.match(/name in --into$/m)
      expect(await withPassword.json(['backup', 'restore', file, '--into', into])).to.include({ rows_equal: true })
      // Its user may not drop the mark of an unfinished restore: an empty table stays, and is in no backup.
      expect(await db.query(`SHOW TABLES FROM ${target} LIKE 'unfinished_restore'`)).to.have.lengthOf(1)
      const restored = openCli({ ...limited, BILLING_DATABASE_URL: targetUrl() })
      const { file: next, rows } = await restored.json(['backup', 'create'])
      expect(rows).not.to.have.property('unfinished_restore')
      expect(await restored.json(['backup', 'verify', next])).to.include({ ok: true })
    } finally {
      await db.query(`DROP USER 'backup-test'@'localhost'`)
    }
  })

  const escaped = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

  it('with several hosts is made from the one that the service uses', async () => {
    const server = await lossyServer(testDatabase().socketPath, true)
    try {
      const url = `mysql://root@127.0.0.1:1,127.0.0.1:${server.port}/${testDatabase().name}`
      const own = openCli({ ...settings, BILLING_BACKUP_DIR: folder, BILLING_DATABASE_URL: url })
      const { file } = await own.json(['backup', 'create'])
      expect(await cli.json(['backup', 'restore', file, '--into', targetUrl()])).to.include({ rows_equal: true })
    } finally {
      await server.close()
    }
  })

  it('of an older version is made as it is, and verified by the migrations of this one', async () => {
    await loadDump(targetUrl(), 17)
    const old = await openTestDb(targetUrl())
    try {
      const ctx = realTimeContext({ ...settings, BILLING_BACKUP_DIR: folder })
      const { manifest } = await backUp({ ...ctx, db: old.db }, { onProgress: () => undefined })
      expect(manifest.schema).to.match(/0017$/)
      const [backup] = await listBackups(folder)
      const reading = {
        identities: [readFileSync(identityFile, 'utf8').trim().split('\n').at(-1)!],
        onStep: () => undefined,
      }
      const verified = await verifyBackup(ctx, backup!, reading)
      expect(verified).to.deep.include({ ok: true, rowsEqual: true, sumsEqual: true })
      expect(verified.ledger.checked).to.be.greaterThan(10)
      expect(await old.db.query(`SHOW TABLES LIKE 'operators'`), 'the database itself').to.deep.equal([])
      expect(readdirSync(ctx.config.home).filter((name) => name.startsWith('copy'))).to.deep.equal([])
    } finally {
      await old.close()
    }
  })

  it('is verified beside what another program is removing', async () => {
    const home = scratchFolder('home')
    // As a folder that is gone between the listing and the look at it.
    symlinkSync(join(home, 'removed'), join(home, 'copy-of-backup-removed'))
    await cli.json(['backup', 'create'])
    const verifier = openCli({ ...settings, BILLING_BACKUP_DIR: folder, BILLING_HOME: home })
    expect(await verifier.json(['backup', 'verify'])).to.include({ ok: true })
  })

  it('is verified wherever it was copied to', async () => {
    const { file } = await cli.json(['backup', 'create'])
    const elsewhere = join(scratchFolder('elsewhere'), 'renamed')
    copyFileSync(file, elsewhere)
    expect(await cli.json(['backup', 'verify', elsewhere])).to.include({ file: elsewhere, ok: true })
    expect((await cli.json(['backup', 'list']))[0]!.verified_at).to.equal(null)
  })
})
