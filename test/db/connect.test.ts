import { expect } from 'chai'
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { after, before, describe, it } from 'mocha'
import { createConnection, type Connection } from 'mysql2/promise'
import { sessionOf } from '#db/session.ts'
import { openDatabase, parseDatabaseUrl } from '#db/connect.ts'
import { hasErrno, insertedNew } from '#db/database-error.ts'
import { embeddedSetup } from '#embedded/setup.ts'
import { pendingMigrations, runMigrations } from '#db/migrate.ts'
import { ISOLATION_LEVEL, MYSQL, RELOAD_TLS, STATEMENT_SECONDS } from '../support/database-server.ts'
import { query, testDatabase, urlOf } from '../support/database.ts'
import { scratchFolder } from '../support/scratch.ts'
import { freePort } from '../support/free-ports.ts'
import { until } from '../support/until.ts'
import { aMigration } from './a-migration.ts'

const LOCK_WAIT_TIMEOUT = 1205

describe('database sessions', () => {
  it('are READ COMMITTED, in UTC, strict and with deadlines on every connection of the pool', async () => {
    const { pool } = testDatabase().db
    const connections = await Promise.all(Array.from({ length: pool.counts.limit }, () => pool.take()))
    const sessions = await Promise.all(
      connections.map(
        (connection) =>
          connection.command(
            `SELECT ${ISOLATION_LEVEL} AS isolation, @@time_zone AS zone, @@sql_mode LIKE '%STRICT_TRANS_TABLES%' AS strict,
                    @@innodb_lock_wait_timeout AS lockSeconds, ${STATEMENT_SECONDS} AS seconds, CONNECTION_ID() AS id`,
          ) as Promise<Record<string, number | string>[]>,
      ),
    )
    for (const connection of connections) pool.release(connection)
    expect(new Set(sessions.map(([session]) => session!['id'])).size).to.equal(connections.length)
    const expected = { isolation: 'READ-COMMITTED', zone: '+00:00', strict: 1, lockSeconds: 5, seconds: 10 }
    for (const [session] of sessions) expect(session).to.include(expected)
  })

  // On MariaDB the deadline for statements ends such a wait, too.
  if (MYSQL !== null)
    it('wait for a table whose definition changes no longer than for a row, and keep their server', async () => {
      const { db, url } = testDatabase()
      const [reader, changer] = [await createConnection(url), await createConnection(url)]
      const connection = await db.pool.take()
      await reader.query('START TRANSACTION')
      await reader.query('SELECT 1 FROM end_users')
      const changed = changer.query('ALTER TABLE end_users FORCE')
      try {
        await until(async () => {
          const waiting =
            "SELECT 1 FROM information_schema.processlist WHERE db = DATABASE() AND state LIKE '%metadata lock%'"
          return (await db.query<unknown[]>(waiting)).length > 0
        })
        const sent = connection.send('UPDATE end_users SET version = 0', [])
        const refusal: unknown = await sent.catch((error: unknown) => error)
        expect(hasErrno(refusal, LOCK_WAIT_TIMEOUT)).to.equal(true)
        expect(connection.isServerFailed).to.equal(false)
      } finally {
        db.pool.release(connection)
        await reader.end()
        await changed
        await changer.end()
      }
    })

  it('recognize a duplicate by its key on a server whose messages are in another language', async () => {
    const { db, url } = testDatabase()
    await db.query("SET GLOBAL lc_messages = 'de_DE'")
    try {
      const german = await openDatabase({ databaseUrl: url, home: '' })
      const add = () =>
        german.db.run(
          "INSERT INTO end_users (app_id, external_ref, version, created_at) VALUES (1, 'an', 0, UTC_TIMESTAMP(3))",
        )
      expect([
        await insertedNew('end_users_app_ref', add()),
        await insertedNew('end_users_app_ref', add()),
      ]).to.deep.equal([true, false])
      await german.close()
    } finally {
      await db.query("SET GLOBAL lc_messages = 'en_US'")
    }
  })

  it('are refused where the server forces what the lists in statements are not written for', async () => {
    const begin = (mode: string, charset: string) => {
      const command = async (sql: string) =>
        Promise.resolve(sql.includes('@@SESSION.sql_mode') ? [{ mode, charset, isReadOnly: 0 }] : [])
      return sessionOf(
        10,
        false,
      )({ command }).then(
        () => null,
        (error: unknown) => (error as Error).message,
      )
    }
    expect(await begin('STRICT_TRANS_TABLES', 'utf8mb4')).to.equal(null)
    expect(await begin('STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES', 'utf8mb4')).to.include('NO_BACKSLASH_ESCAPES')
    expect(await begin('STRICT_TRANS_TABLES', 'latin1')).to.include('reads statements as latin1')
  })

  it('store and read an instant to the millisecond, in a process far from UTC', async () => {
    const { db } = testDatabase()
    const instant = new Date('2026-03-01T00:30:00.123Z')
    expect(instant.getTimezoneOffset()).to.equal(-7 * 60)
    await db.query("INSERT INTO end_users (app_id, external_ref, version, created_at) VALUES (1, 'an', 0, ?)", [
      instant,
    ])
    const [row]: { at: Date; text: string }[] = await db.query(
      'SELECT created_at AS at, CAST(created_at AS CHAR) AS text FROM end_users',
    )
    expect(row).to.deep.equal({ at: instant, text: '2026-03-01 00:30:00.123' })
  })

  it('return counts and safe integers as numbers', async () => {
    const [row]: unknown[] = await testDatabase().db.query(
      'SELECT COUNT(*) AS n, 9007199254740991 AS most FROM end_users',
    )
    expect(row).to.deep.equal({ n: 0, most: 9007199254740991 })
  })
})

describe('opening a database', () => {
  it('migrates the embedded one', async () => {
    const { db, close } = await openDatabase({ databaseUrl: null, home: scratchFolder('home') })
    expect(await pendingMigrations(db)).to.deep.equal([])
    await close()
  })

  it('does not migrate a server’s database', async () => {
    const { db, socketPath, name } = testDatabase()
    await db.query(`CREATE DATABASE ${name}_empty`)
    const empty = await openDatabase({ databaseUrl: urlOf(socketPath, `${name}_empty`), home: '' })
    expect(await query(empty.db, 'SHOW TABLES')).to.deep.equal([])
    await empty.close()
    await db.query(`DROP DATABASE ${name}_empty`)
  })

  it('fails if nobody listens', async () => {
    const url = `mysql://root@localhost/paygate?socketPath=${encodeURIComponent(join(scratchFolder('empty'), 'nobody.sock'))}`
    expect(await failureOf(openDatabase({ databaseUrl: url, home: '' }))).to.include('ENOENT')
  })
})

describe('the address of a database', () => {
  it('names host, port, user, password and database, each percent-decoded', () => {
    expect(parseDatabaseUrl('mysql://pay%40gate:p%2Fw%3A@db.example:3307/bill%20ing')).to.deep.equal([
      {
        host: 'db.example',
        port: 3307,
        user: 'pay@gate',
        password: 'p/w:',
        database: 'bill ing',
      },
    ])
  })

  it('defaults to port 3306, and may be an IPv6 address', () => {
    expect(parseDatabaseUrl('mariadb://u@[2001:db8::1]/d')[0]).to.include({ host: '2001:db8::1', port: 3306 })
  })

  it('may name several hosts, which share user, password, database and parameters', () => {
    const targets = parseDatabaseUrl('mysql://u:a,b@db1.example:13306,db2.example,[::1]:13308/d')
    const shared = { user: 'u', password: 'a,b', database: 'd' }
    expect(targets).to.deep.equal([
      { host: 'db1.example', port: 13306, ...shared },
      { host: 'db2.example', port: 3306, ...shared },
      { host: '::1', port: 13308, ...shared },
    ])
  })

  it('may be a UNIX socket instead', () => {
    const [target] = parseDatabaseUrl('mysql://u@localhost/d?socketPath=%2Frun%2Fdb.sock')
    expect(target).to.deep.equal({ socketPath: '/run/db.sock', user: 'u', database: 'd' })
  })

  for (const [url, word] of [
    ['mysql://u:p@h/d?ssl-mode=REQUIRED', 'ssl-mode'],
    ['mysql://u:p@h/d?ssl=perhaps', 'ssl must be'],
    ['mysql://u:p@192.0.2.1/d?ssl=true', 'must be a name'],
    ['mysql://h/d', 'user'],
    ['mysql://u@h1,h2/d?socketPath=/s', 'several hosts'],
    ['mysql://u@h1,192.0.2.1/d?ssl=true', 'must be a name'],
  ] as const) {
    it(`is refused as ${url}`, () => {
      expect(() => parseDatabaseUrl(url)).to.throw(word)
    })
  }
})

describe('a server with different defaults', () => {
  let directory: string
  let server: ChildProcess
  let admin: Connection
  let address: string
  let certificate: string

  before(async () => {
    directory = scratchFolder('tls')
    certificate = join(directory, 'certificate.pem')
    certify(directory, 'db.example')
    const setup = embeddedSetup(directory)
    const [install = '', ...flags] = setup.install
    execFileSync(install, [...flags, `--datadir=${setup.dataDirectory}`], { stdio: 'ignore' })
    const port = await freePort()
    const [program = '', ...options] = setup.server.filter((option) => option !== '--skip-networking')
    const tls = [`--ssl-cert=${certificate}`, `--ssl-key=${join(directory, 'key.pem')}`]
    const defaults = ['--default-time-zone=+07:00', '--transaction-isolation=REPEATABLE-READ', '--sql-mode=']
    server = spawn(program, [...options, ...tls, ...defaults, '--bind-address=127.0.0.1', `--port=${port}`], {
      stdio: 'ignore',
    })
    admin = await whenReady(() => createConnection({ socketPath: setup.serverSocket, user: 'root' }))
    await admin.query("CREATE USER 'paygate'@'127.0.0.1' IDENTIFIED BY 'secret' REQUIRE SSL")
    await admin.query('CREATE DATABASE billing')
    await admin.query("GRANT ALL ON billing.* TO 'paygate'@'127.0.0.1'")
    address = `mysql://paygate:secret@localhost:${port}/billing`
  })

  after(async () => {
    await admin.end()
    const gone = once(server, 'exit')
    server.kill()
    await gone
  })

  it('is refused by TLS if its certificate is for another host', async () => {
    const failure = await failureOf(openDatabase({ databaseUrl: `${address}?ssl=${certificate}`, home: '' }))
    expect(failure).to.match(/altnames/)
  })

  it('is used over TLS if its certificate is from the authority in the file and for the host', async () => {
    certify(directory, 'localhost')
    await admin.query(RELOAD_TLS)
    const { db, close } = await openDatabase({ databaseUrl: `${address}?ssl=${certificate}`, home: '' })
    const connection = await db.pool.take()
    const [row] = (await connection.command("SHOW STATUS LIKE 'Ssl_cipher'")) as { Value: string }[]
    db.pool.release(connection)
    expect(row!.Value).to.match(/^TLS_/)
    await close()
  })

  it('is refused by TLS if the system’s authorities do not know the certificate', async () => {
    const failure = await failureOf(openDatabase({ databaseUrl: `${address}?ssl=true`, home: '' }))
    expect(failure).to.match(/self-signed certificate/)
  })

  it('is not used in plain text if TLS is requested but not offered', async () => {
    const { socketPath, name } = testDatabase()
    const failure = await failureOf(openDatabase({ databaseUrl: `${urlOf(socketPath, name)}&ssl=true`, home: '' }))
    // MariaDB offers it from 11.4 on, with a certificate of its own making.
    expect(failure).to.match(/secure connection|self-signed certificate/)
  })

  it('still has sessions with our settings', async () => {
    const { db, close } = await openDatabase({ databaseUrl: `${address}?ssl=${certificate}`, home: '' })
    const connection = await db.pool.take()
    const [session] = (await connection.command(
      `SELECT ${ISOLATION_LEVEL} AS isolation, @@time_zone AS zone, @@sql_mode AS mode, @@GLOBAL.time_zone AS serverZone`,
    )) as Record<string, string>[]
    db.pool.release(connection)
    expect(session).to.include({ isolation: 'READ-COMMITTED', zone: '+00:00', serverZone: '+07:00' })
    expect(session!['mode']).to.include('STRICT_TRANS_TABLES')
    await close()
  })

  it('is migrated over TLS, in a session with our settings but without deadlines', async () => {
    const { db, close } = await openDatabase({ databaseUrl: `${address}?ssl=${certificate}`, home: '' })
    let session: unknown
    const migration = aMigration('First1795200000901', async (runner) => {
      ;[session] = (await runner.query(
        `SELECT ${ISOLATION_LEVEL} AS isolation, @@time_zone AS zone, @@sql_mode LIKE '%STRICT_TRANS_TABLES%' AS strict,
                ${STATEMENT_SECONDS} AS seconds, @@lock_wait_timeout AS metadataSeconds`,
      )) as unknown[]
    })
    expect(await runMigrations(db, [migration])).to.deep.equal(['First1795200000901'])
    const expected = { isolation: 'READ-COMMITTED', zone: '+00:00', strict: 1, seconds: 0, metadataSeconds: 30 }
    expect(session).to.deep.equal(expected)
    await close()
  })
})

function certify(directory: string, host: string): void {
  const files = ['-keyout', join(directory, 'key.pem'), '-out', join(directory, 'certificate.pem')]
  const subject = ['-subj', `/CN=${host}`, '-addext', `subjectAltName=DNS:${host}`]
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...files, ...subject], { stdio: 'ignore' })
}

async function whenReady<T>(attempt: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + 10_000
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (performance.now() > deadline) throw error
      await delay(20)
    }
  }
}

async function failureOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'it did not fail',
    (error: unknown) => String(error),
  )
}
