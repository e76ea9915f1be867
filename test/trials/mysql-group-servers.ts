import { execFileSync, type ChildProcess } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { MYSQL } from '../support/database-server.ts'
import { Network } from './network.ts'
import { freePorts } from '../support/free-ports.ts'
import { end, launch, untilConnected } from './server-process.ts'

/** Where `bin/database-packages` put MySQL. */
export const MYSQL_FOLDER = MYSQL ?? join(import.meta.dirname, '../../.mysql')
const USER = 'paygate'
const PASSWORD = 'a,b@c'
const DATABASE = 'paygate'
const GROUP = '8f9e4c2a-52b1-4a7e-9c57-2f7d0c7b1a11'
const START_MS = 120_000
const POLL_MS = 100

/** A member of the group: a MySQL server with its own folder and, where that is allowed, its own network. */
interface Member {
  readonly number: number
  readonly folder: string
  readonly host: string
  readonly ports: { readonly sql: number; readonly group: number }
  server: ChildProcess | null
}

/**
 * A group of three MySQL servers (Group Replication, single primary) from Debian's packages. Except for ports, paths and the size of the
 * machine, the settings are the defaults and the one that docs/scaling.md asks for.
 */
export class MysqlGroup {
  readonly #root: string
  readonly #network: Network
  readonly #members: readonly Member[]

  private constructor(root: string, network: Network, members: readonly Member[]) {
    this.#root = root
    this.#network = network
    this.#members = members
  }

  /** Starts three members from copies of an empty server, and waits until all of them are online. The first one is the primary. */
  static async start(): Promise<MysqlGroup> {
    if (!existsSync(join(MYSQL_FOLDER, 'bin/mysqld')))
      throw new Error(`run bin/database-packages mysql ${MYSQL_FOLDER}`)
    const root = mkdtempSync(join(tmpdir(), 'paygate-group-'))
    const network = Network.open(3)
    const ports = await freePorts(6)
    const members = [0, 1, 2].map((number): Member => {
      const [sql = 0, group = 0] = ports.slice(number * 2)
      const folder = join(root, `member${number + 1}`)
      return { number, folder, host: network.addressOf(number), ports: { sql, group }, server: null }
    })
    const group = new MysqlGroup(root, network, members)
    try {
      await group.#make()
      return group
    } catch (error) {
      const logs = members.map(({ number }) => group.logOf(number)).join('\n')
      await group.stop()
      throw new Error(logs, { cause: error })
    }
  }

  /** Whether members can be cut off from each other. */
  get canCut(): boolean {
    return this.#network.canCut
  }

  /** The addresses of the members, as `host:port`, the named one first. */
  addresses(first = 0): string[] {
    return [0, 1, 2].map((index) => {
      const { host, ports } = this.#member((first + index) % 3)
      return `${host}:${ports.sql}`
    })
  }

  /** `BILLING_DATABASE_URL` with all members, the named one first; or with other addresses, such as a proxy's. */
  url(first = 0, addresses: readonly string[] = this.addresses(first)): string {
    return `mysql://${USER}:${encodeURIComponent(PASSWORD)}@${addresses.join(',')}/${DATABASE}`
  }

  /** Kills a member with -9. */
  async kill(number: number): Promise<void> {
    const member = this.#member(number)
    const { server } = member
    member.server = null
    if (server) await end(server)
  }

  /** Stops a member's process in the middle of what it does, or lets it go on. */
  signal(number: number, signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#member(number).server?.kill(signal)
  }

  cut(number: number): void {
    this.#network.cut(number)
  }

  heal(number: number): void {
    this.#network.heal(number)
  }

  /** Restarts a killed member, or takes one back that the group expelled; it has caught up with the others when this returns. */
  async join(number: number): Promise<void> {
    const member = this.#member(number)
    if (!member.server) await this.#launch(member)
    for (const statement of ['STOP GROUP_REPLICATION', 'SET GLOBAL offline_mode = OFF', 'START GROUP_REPLICATION'])
      await this.ask(number, statement)
    await this.#untilOnline(member)
  }

  /** Makes the remaining member continue alone. */
  async goOnAlone(number: number): Promise<void> {
    for (const statement of ['STOP GROUP_REPLICATION', 'SET GLOBAL offline_mode = OFF', ...BOOTSTRAP])
      await this.ask(number, statement)
    await this.#untilOnline(this.#member(number))
  }

  /** Hands the work over to another member. */
  async handOver(number: number): Promise<void> {
    const [row] = await this.ask(number, 'SELECT @@server_uuid AS id')
    await this.ask(number, `SELECT group_replication_set_as_primary('${String(row?.['id'])}')`)
  }

  /** The member that takes writes, as the named member sees it; null while there is none. */
  async primary(seenBy: number): Promise<number | null> {
    const [row] = await this.ask(
      seenBy,
      `SELECT MEMBER_HOST AS host, MEMBER_PORT AS port FROM performance_schema.replication_group_members
       WHERE MEMBER_ROLE = 'PRIMARY' AND MEMBER_STATE = 'ONLINE'`,
    )
    return this.#members.find(({ ports }) => ports.sql === Number(row?.['port']))?.number ?? null
  }

  /** Runs a statement on a member as its administrator. */
  async ask(number: number, sql: string): Promise<RowDataPacket[]> {
    const connection = await createConnection(this.#administrator(this.#member(number)))
    try {
      const [rows] = await connection.query<RowDataPacket[]>(sql)
      return rows
    } finally {
      await connection.end()
    }
  }

  /** Stops all members and removes their data. */
  async stop(): Promise<void> {
    for (const { number } of this.#members) await this.kill(number)
    this.#network.close()
    rmSync(this.#root, { recursive: true, force: true })
  }

  /** The end of a member's log, for error messages. */
  logOf(number: number): string {
    return readFileSync(this.#log(this.#member(number)), 'utf8').slice(-3000)
  }

  async #make(): Promise<void> {
    const [first, ...others] = this.#members as readonly [Member, ...Member[]]
    const data = join(first.folder, 'data')
    mkdirSync(first.folder)
    execFileSync(MYSQLD, [...ALWAYS, '--initialize-insecure', `--datadir=${data}`], { stdio: 'ignore' })
    for (const { folder } of others) {
      mkdirSync(folder)
      // Each server makes an id of its own.
      cpSync(data, join(folder, 'data'), { recursive: true, filter: (path) => !path.endsWith('auto.cnf') })
    }
    for (const member of this.#members) {
      await this.#launch(member)
      for (const statement of PREPARE) await this.ask(member.number, statement)
    }
    for (const statement of [...BOOTSTRAP, ...CREATE]) await this.ask(first.number, statement)
    await this.#untilOnline(first)
    for (const member of others) {
      await this.ask(member.number, 'START GROUP_REPLICATION')
      await this.#untilOnline(member)
    }
  }

  async #launch(member: Member): Promise<void> {
    const [program, ...options] = this.#network.on(member.number, MYSQLD)
    member.server = launch(program, [...options, ...ALWAYS, ...this.#settingsOf(member)], this.#log(member))
    const connection = await untilConnected(() => createConnection(this.#administrator(member)), this.#log(member))
    await connection.end()
  }

  #settingsOf({ number, folder, host, ports }: Member): string[] {
    const seeds = this.#members.map((member) => `${member.host}:${member.ports.group}`).join(',')
    return [
      `--datadir=${join(folder, 'data')}`,
      `--socket=${join(folder, 'sock')}`,
      `--pid-file=${join(folder, 'pid')}`,
      `--bind-address=${host}`,
      `--port=${ports.sql}`,
      `--report-host=${host}`,
      `--report-port=${ports.sql}`,
      `--server-id=${number + 1}`,
      `--loose-group-replication-local-address=${host}:${ports.group}`,
      `--loose-group-replication-group-seeds=${seeds}`,
    ]
  }

  async #untilOnline(member: Member): Promise<void> {
    const deadlineMs = performance.now() + START_MS
    for (;;) {
      const [row] = await this.ask(
        member.number,
        `SELECT MEMBER_STATE AS state FROM performance_schema.replication_group_members WHERE MEMBER_ID = @@server_uuid`,
      )
      if (row?.['state'] === 'ONLINE') return
      if (performance.now() > deadlineMs)
        throw new Error(`member ${member.number + 1} is ${String(row?.['state'])}:\n${this.logOf(member.number)}`)
      await delay(POLL_MS)
    }
  }

  #administrator({ folder }: Member): { socketPath: string; user: string } {
    return { socketPath: join(folder, 'sock'), user: 'root' }
  }

  #log({ folder }: Member): string {
    return join(folder, 'log')
  }

  #member(number: number): Member {
    const member = this.#members[number]
    if (!member) throw new Error(`there is no member ${number}`)
    return member
  }
}

const MYSQLD = join(MYSQL_FOLDER, 'bin/mysqld')

const ALWAYS = [
  '--no-defaults',
  ...(process.getuid?.() === 0 ? ['--user=root'] : []),
  '--mysqlx=OFF',
  '--skip-name-resolve',
  '--secure-file-priv=',
  '--innodb-buffer-pool-size=48M',
  '--innodb-redo-log-capacity=64M',
  '--gtid-mode=ON',
  '--enforce-gtid-consistency=ON',
  '--plugin-load-add=group_replication.so',
  `--loose-group-replication-group-name=${GROUP}`,
  '--loose-group-replication-start-on-boot=OFF',
  '--loose-group-replication-recovery-get-public-key=ON',
  '--loose-group-replication-ip-allowlist=127.0.0.0/8,198.51.100.0/24',
  '--loose-group-replication-unreachable-majority-timeout=5',
]

/** On each member before it joins, and not replicated. */
const PREPARE = [
  "CHANGE REPLICATION SOURCE TO SOURCE_USER = 'copy', SOURCE_PASSWORD = 'copy' FOR CHANNEL 'group_replication_recovery'",
  'RESET BINARY LOGS AND GTIDS',
]

const BOOTSTRAP = [
  'SET GLOBAL group_replication_bootstrap_group = ON',
  'START GROUP_REPLICATION',
  'SET GLOBAL group_replication_bootstrap_group = OFF',
]

const CREATE = [
  "CREATE USER 'copy'@'%' IDENTIFIED BY 'copy'",
  "GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM ON *.* TO 'copy'@'%'",
  `CREATE DATABASE ${DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci`,
  `CREATE USER '${USER}'@'%' IDENTIFIED BY '${PASSWORD}'`,
  `GRANT ALL ON ${DATABASE}.* TO '${USER}'@'%'`,
  `GRANT SELECT ON performance_schema.replication_group_members TO '${USER}'@'%'`,
]
