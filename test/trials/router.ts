import { execFileSync, type ChildProcess } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createConnection } from 'mysql2/promise'
import { inTransaction } from '#commands/transaction.ts'
import { bytes } from '#db/columns.ts'
import { embeddedSetup } from '#embedded/setup.ts'
import { MIGRATIONS, runMigrations } from '#db/migrate.ts'
import { shape } from '#db/table.ts'
import { deliverDue } from '#webhooks/deliver-due.ts'
import { startService } from '../support/api.ts'
import { anAuthority, type Certificate } from '../support/certificates.ts'
import { requireCleanLedger } from '../support/clean-ledger.ts'
import { testContext } from '../support/context.ts'
import { openTestDb, type TestDb } from '../support/database.ts'
import { aCheckout, anApp, aPlan, priceId, tokenOf } from '../support/factories.ts'
import { mapConcurrently } from '../support/map-concurrently.ts'
import { Receiver } from '../support/receiver.ts'
import { freePort } from '../support/shell.ts'
import { MYSQL_FOLDER } from './mysql-group-servers.ts'
import { end, launch, untilConnected } from './server-process.ts'

export interface RouterOptions {
  readonly payments: number
  /** Transactions whose values look like commands of the protocol. */
  readonly transactions: number
  /** At the same time. */
  readonly callers: number
}

export interface RouterFigures {
  readonly migrations: number
  readonly values: number
  readonly payments: number
  readonly webhooks: number
}

const PASSWORD = 'a,b@c'
/** The bytes by which commands end a connection, choose a database, and run a statement. */
const COMMAND_BYTES = [0, 1, 2, 3]

/**
 * MySQL behind MySQL Router, which reads the protocol: migrates, stores values that look like commands, and sells. Throws if a value
 * comes back changed, a payment is not answered 200, a webhook comes twice or never, or the ledger has a discrepancy.
 */
export async function router({ payments, transactions, callers }: RouterOptions): Promise<RouterFigures> {
  const root = mkdtempSync(join(tmpdir(), 'paygate-router-'))
  const processes: ChildProcess[] = []
  const authority = anAuthority()
  const receiver = await Receiver.start()
  try {
    const serverPort = await startServer(root, processes)
    const port = await startRouter(root, serverPort, authority.issue('localhost'), processes)
    const url = `mysql://paygate:${encodeURIComponent(PASSWORD)}@localhost:${port}/paygate?ssl=${authority.caPath}`
    const { db, close } = await openTestDb(url)
    try {
      const migrations = await runMigrations(db)
      if (migrations.length !== MIGRATIONS.length) throw new Error(`migrated: ${migrations.join()}`)
      await storeCommands(db, transactions, callers)
      const webhooks = await sell(db, receiver, payments, callers)
      return { migrations: migrations.length, values: transactions * COMMAND_BYTES.length, payments, webhooks }
    } finally {
      await close()
    }
  } finally {
    await receiver.stop()
    await Promise.all(processes.map((child) => end(child)))
    authority.discard()
    rmSync(root, { recursive: true, force: true })
  }
}

/** A server with keys for TLS, as it has by itself. Returns its port. */
async function startServer(root: string, processes: ChildProcess[]): Promise<number> {
  const setup = embeddedSetup(root, [join(MYSQL_FOLDER, 'bin')])
  const withKeys = (options: readonly string[]) => options.filter((option) => !option.includes('auto-generate'))
  const [install = '', ...flags] = withKeys(setup.install)
  execFileSync(install, [...flags, `--datadir=${setup.dataDirectory}`], { stdio: 'ignore' })
  const [program = '', ...options] = withKeys(setup.server).filter((option) => option !== '--skip-networking')
  const port = await freePort()
  processes.push(launch(program, [...options, '--bind-address=127.0.0.1', `--port=${port}`], setup.logFile))
  const admin = await untilConnected(
    () => createConnection({ socketPath: setup.serverSocket, user: 'root' }),
    setup.logFile,
  )
  await admin.query('CREATE DATABASE paygate')
  await admin.query(`CREATE USER paygate@'127.0.0.1' IDENTIFIED BY '${PASSWORD}'`)
  await admin.query("GRANT ALL ON paygate.* TO paygate@'127.0.0.1'")
  await admin.end()
  return port
}

/** Router with a fixed destination. It ends TLS itself, so that it reads what passes. Returns its port. */
async function startRouter(
  root: string,
  serverPort: number,
  { key, cert }: Certificate,
  processes: ChildProcess[],
): Promise<number> {
  const port = await freePort()
  const folder = join(root, 'router')
  mkdirSync(folder)
  writeFileSync(join(folder, 'cert.pem'), cert)
  writeFileSync(join(folder, 'key.pem'), key)
  const settings = join(folder, 'router.conf')
  writeFileSync(
    settings,
    `[DEFAULT]
plugin_folder=${MYSQL_FOLDER}/usr/lib/mysqlrouter/plugin
runtime_folder=${folder}
data_folder=${folder}
[logger]
level=info
[routing:paygate]
bind_address=127.0.0.1
bind_port=${port}
destinations=127.0.0.1:${serverPort}
routing_strategy=first-available
protocol=classic
client_ssl_mode=PREFERRED
client_ssl_cert=${folder}/cert.pem
client_ssl_key=${folder}/key.pem
server_ssl_mode=PREFERRED
`,
  )
  const log = join(folder, 'log')
  processes.push(launch(join(MYSQL_FOLDER, 'bin', 'mysqlrouter'), ['-c', settings], log))
  const connection = {
    host: '127.0.0.1',
    port,
    user: 'paygate',
    password: PASSWORD,
    ssl: { rejectUnauthorized: false },
  }
  const first = await untilConnected(() => createConnection(connection), log)
  await first.end()
  return port
}

async function storeCommands(db: TestDb, transactions: number, callers: number): Promise<void> {
  await db.query('CREATE TABLE said (id BIGINT PRIMARY KEY, value VARBINARY(200) NOT NULL)')
  const ctx = { ...testContext(), db }
  const numbers = Array.from({ length: transactions }, (_, number) => number)
  await mapConcurrently(
    numbers,
    (number) =>
      inTransaction(ctx, async (tx) => {
        for (const byte of COMMAND_BYTES) {
          const id = number * COMMAND_BYTES.length + byte
          const value = Buffer.concat([Buffer.alloc(1 + (number % 40), byte), Buffer.from(`\u0003DROP TABLE said`)])
          await tx.run('INSERT INTO said (id, value) VALUES (?, ?)', [id, value])
          const found = await tx.one(shape({ value: bytes() }), 'SELECT value FROM said WHERE id = ? AND value = ?', [
            id,
            value,
          ])
          if (found?.value.equals(value) !== true) throw new Error(`a value of bytes ${byte} came back changed`)
        }
      }),
    callers,
  )
  const [row]: { count: number }[] = await db.query('SELECT COUNT(*) AS count FROM said')
  if (Number(row?.count) !== transactions * COMMAND_BYTES.length) throw new Error(`${row?.count} values are there`)
}

/** Sells over HTTP; returns the number of webhooks. */
async function sell(db: TestDb, receiver: Receiver, payments: number, callers: number): Promise<number> {
  const service = await startService({}, undefined, db)
  try {
    const { ctx } = service
    const app = await anApp(ctx, { webhookUrl: receiver.url })
    receiver.secret = app.webhookSecret
    const price = priceId(await aPlan(ctx, app))
    const refs = Array.from({ length: payments }, (_, number) => `user-${number}`)
    await mapConcurrently(
      refs,
      async (ref) => {
        const token = tokenOf(await aCheckout(ctx, app, { external_ref: ref, price_id: price }))
        const body = {
          raw: JSON.stringify({ payment_method: 'test' }),
          headers: { 'Content-Type': 'application/json' },
        }
        const { status, text } = await service.call('POST', `/checkout/${token}/resolve`, body)
        if (status !== 200) throw new Error(`a payment was answered ${status}: ${text}`)
      },
      callers,
    )
    await deliverDue(ctx)
    const checked = await requireCleanLedger(ctx, 'behind MySQL Router')
    if (checked !== payments) throw new Error(`${checked} subscriptions after ${payments} payments`)
    return await checkWebhooks(db, receiver)
  } finally {
    await service.stop()
  }
}

async function checkWebhooks(db: TestDb, receiver: Receiver): Promise<number> {
  const [row]: { events: number; open: number }[] = await db.query(
    "SELECT COUNT(*) AS events, COUNT(IF(delivery_status <> 'delivered', 1, NULL)) AS open FROM events",
  )
  const ids = new Set(receiver.received.map(({ eventId }) => eventId))
  if (Number(row?.open) !== 0 || ids.size !== Number(row?.events) || ids.size !== receiver.received.length)
    throw new Error(`${row?.events} events, ${row?.open} open; ${receiver.received.length} webhooks came`)
  if (receiver.received.some(({ verified }) => verified !== true)) throw new Error('a webhook had a wrong signature')
  return ids.size
}
