import { execFileSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { inTransaction } from '#commands/transaction.ts'
import { bytes } from '#db/columns.ts'
import { MIGRATIONS, runMigrations } from '#db/migrate.ts'
import { shape } from '#db/table.ts'
import { startService } from '../support/api.ts'
import { anAuthority, type Authority } from '../support/certificates.ts'
import { requireCleanLedger } from '../support/clean-ledger.ts'
import { testContext, testEnvironment } from '../support/context.ts'
import { openTestDb, type TestDb } from '../support/database.ts'
import { deliverDue } from '../support/deliver-due.ts'
import { mapConcurrently } from '../support/map-concurrently.ts'
import { Receiver } from '../support/receiver.ts'
import { onCluster, sell as sellThrough, type PartFigures } from './cluster-trial.ts'
import { MYSQL_FOLDER, MysqlGroup } from './mysql-group-servers.ts'
import { startHaproxy, startRouter } from './proxies.ts'
import { end } from './server-process.ts'
import { aShopWithWebhooks, chooseAccepted, openCheckouts } from './shop.ts'
import { SingleServer } from './single-server.ts'

export interface RouterOptions {
  readonly payments: number
  /** Transactions whose values look like commands of the protocol. */
  readonly transactions: number
  /** At the same time. */
  readonly callers: number
}

const BILLING_CLI = join(import.meta.dirname, '../../bin/billing-cli')
/** An election of MySQL takes about 20 s. */
const LONGEST_RECOVERY_MS = 45_000
/** The bytes by which commands end a connection, choose a database, and run a statement. */
const COMMAND_BYTES = [0, 1, 2, 3]

/**
 * MySQL behind MySQL Router, which reads the protocol: migrates, stores values that look like commands, and sells. Throws if a value
 * comes back changed, a payment is not answered 200, a webhook comes twice or never, or the ledger has a discrepancy. Then a group of
 * three, whose primary is killed: throws if payments do not go on within 45 s.
 */
export async function router({ payments, transactions, callers }: RouterOptions) {
  const processes: ChildProcess[] = []
  const server = await SingleServer.start([join(MYSQL_FOLDER, 'bin')])
  const authority = anAuthority()
  const receiver = await Receiver.start()
  try {
    const port = await startRouter([`127.0.0.1:${server.port}`], authority.issue('localhost'), processes)
    const url = `${server.url('localhost', port)}?ssl=${authority.caPath}`
    const { db, close } = await openTestDb(url)
    try {
      const migrations = await runMigrations(db)
      if (migrations.length !== MIGRATIONS.length) throw new Error(`migrated: ${migrations.join()}`)
      await storeCommands(db, transactions, callers)
      const webhooks = await sell(db, receiver, payments, callers)
      const values = transactions * COMMAND_BYTES.length
      return {
        migrations: migrations.length,
        values,
        payments,
        webhooks,
        group: await followPrimary(payments, startGroupBehindRouter),
      }
    } finally {
      await close()
    }
  } finally {
    await receiver.stop()
    await Promise.all(processes.map((child) => end(child)))
    await server.stop()
  }
}

/** A group of three behind HAProxy, whose primary is killed: throws if payments do not go on within 45 s. */
export async function haproxy(payments: number): Promise<{ readonly group: readonly PartFigures[] }> {
  return { group: await followPrimary(payments, startGroupBehindHaproxy) }
}

/** Starts a proxy. Returns the address for Paygate. */
type StartProxy = (group: MysqlGroup, kit: ProxyKit) => Promise<string>

interface ProxyKit {
  readonly authority: Authority
  readonly processes: ChildProcess[]
  /** Whom HAProxy asks for the role of each member. */
  readonly checks: Server[]
}

/** A group of three behind a proxy. */
class ProxiedGroup {
  readonly #group: MysqlGroup
  readonly #kit: ProxyKit = {
    authority: anAuthority(),
    processes: [],
    checks: [],
  }
  #url = ''

  private constructor(group: MysqlGroup) {
    this.#group = group
  }

  static async start(startProxy: StartProxy): Promise<ProxiedGroup> {
    const proxied = new ProxiedGroup(await MysqlGroup.start())
    // Router tries the members in this order, so it has to be that of the election.
    for (const [number, weight] of [90, 70, 10].entries())
      await proxied.#group.ask(number, `SET GLOBAL group_replication_member_weight = ${weight}`)
    proxied.#url = await startProxy(proxied.#group, proxied.#kit)
    return proxied
  }

  url(): string {
    return this.#url
  }

  /** Kills a member with -9; the first one is the primary. */
  async kill(number: number): Promise<void> {
    await this.#group.kill(number)
  }

  async stop(): Promise<void> {
    const { processes, checks } = this.#kit
    for (const check of checks) check.close()
    await Promise.all(processes.map((child) => end(child)))
    await this.#group.stop()
  }
}

/** Router ends TLS itself, so that it reads what passes. */
export const startGroupBehindRouter = () =>
  ProxiedGroup.start(async (group, { authority, processes }) => {
    const port = await startRouter(group.addresses(), authority.issue('localhost'), processes)
    return `${group.url(0, [`localhost:${port}`])}?ssl=${authority.caPath}`
  })

const startGroupBehindHaproxy = () =>
  ProxiedGroup.start(async (group, { processes, checks }) => {
    const members = await Promise.all(
      group.addresses().map(async (address, number) => {
        const check = createServer((_, response) => void answerRole(group, number, response)).listen(0, '127.0.0.1')
        checks.push(check)
        await once(check, 'listening')
        return { address, checkPort: (check.address() as AddressInfo).port }
      }),
    )
    return group.url(0, [`127.0.0.1:${await startHaproxy(members, processes)}`])
  })

/** 200 while the member is the primary. */
async function answerRole(group: MysqlGroup, number: number, response: ServerResponse): Promise<void> {
  const primary = await group.primary(number).catch(() => null)
  response.writeHead(primary === number ? 200 : 503).end()
}

/** The command line migrates, three daemons sell, and the primary is killed. */
async function followPrimary(payments: number, start: () => Promise<ProxiedGroup>): Promise<readonly PartFigures[]> {
  const group = await start()
  try {
    const env = { ...process.env, ...testEnvironment({ BILLING_DATABASE_URL: group.url() }) }
    execFileSync(BILLING_CLI, ['migrate'], { env })
    const load = { payments, endUsers: 20, reminders: 10, payers: 12 }
    const { parts } = await onCluster(group, load, async (trial) => [
      await sellThrough(trial, 'kill -9 of the primary', () => group.kill(0)),
    ])
    const late = parts.find(({ recoveryMs = 0 }) => recoveryMs > LONGEST_RECOVERY_MS)
    if (late) throw new Error(`payments went on after ${late.recoveryMs} ms`)
    return parts
  } finally {
    await group.stop()
  }
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
    const tokens = await openCheckouts(ctx, await aShopWithWebhooks(ctx, receiver), 'user', payments)
    await mapConcurrently(tokens, (token) => chooseAccepted(service, token, 'test'), callers)
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
