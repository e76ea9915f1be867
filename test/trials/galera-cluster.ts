import { execFileSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { findProgram } from '#embedded/setup.ts'
import { freePorts } from '../support/free-ports.ts'
import { end, launch } from './server-process.ts'

const PROVIDER = '/usr/lib/galera/libgalera_smm.so'
const USER = 'paygate'
const PASSWORD = 'a,b@c'
const DATABASE = 'paygate'
const START_MS = 120_000
const POLL_MS = 100

interface Ports {
  readonly sql: number
  readonly group: number
  readonly increments: number
  readonly copies: number
}

/** A node of the cluster: a MariaDB server with its own folder. */
interface Node {
  readonly number: number
  readonly folder: string
  readonly ports: Ports
  server: ChildProcess | null
}

/**
 * Three nodes of MariaDB Galera on loopback, from Debian's packages. Except for ports, paths and the size of the machine, all settings
 * are the defaults.
 */
export class GaleraCluster {
  readonly #root: string
  readonly #nodes: readonly Node[]

  private constructor(root: string, nodes: readonly Node[]) {
    this.#root = root
    this.#nodes = nodes
  }

  /** Starts three nodes from copies of an empty server, and waits until all of them are synced. */
  static async start(): Promise<GaleraCluster> {
    if (!existsSync(PROVIDER)) throw new Error(`${PROVIDER} is missing: run bin/system-packages --trials`)
    const root = mkdtempSync(join(tmpdir(), 'paygate-galera-'))
    const ports = await freePorts(12)
    const nodes = [0, 1, 2].map((number): Node => {
      const [sql = 0, group = 0, increments = 0, copies = 0] = ports.slice(number * 4)
      return {
        number,
        folder: join(root, `node${number + 1}`),
        ports: { sql, group, increments, copies },
        server: null,
      }
    })
    const cluster = new GaleraCluster(root, nodes)
    try {
      await cluster.#make()
      return cluster
    } catch (error) {
      await cluster.stop()
      throw error
    }
  }

  /** `BILLING_DATABASE_URL` with all nodes, the named one first. */
  url(first = 0): string {
    const hosts = [0, 1, 2].map((index) => `127.0.0.1:${this.#node((first + index) % 3).ports.sql}`)
    return `mysql://${USER}:${encodeURIComponent(PASSWORD)}@${hosts.join(',')}/${DATABASE}`
  }

  /** Kills a node with -9. */
  async kill(number: number): Promise<void> {
    await this.#end(this.#node(number), 'SIGKILL')
  }

  /** Restarts a killed node; it has caught up with the others when this returns. */
  async join(number: number): Promise<void> {
    const node = this.#node(number)
    await this.#launch(node, ['--wsrep-start-position=' + this.#positionOf(node)])
    await this.#untilSynced(node)
  }

  /** Makes the remaining node continue alone. */
  async goOnAlone(number: number): Promise<void> {
    await this.ask(number, "SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'")
    await this.#untilSynced(this.#node(number))
  }

  /** Runs a statement on a node as its administrator. */
  async ask(number: number, sql: string): Promise<RowDataPacket[]> {
    const { folder } = this.#node(number)
    const connection = await createConnection({ socketPath: join(folder, 'sock'), user: 'root' })
    try {
      const [rows] = await connection.query<RowDataPacket[]>(sql)
      return rows
    } finally {
      await connection.end()
    }
  }

  /** Stops all nodes and removes their data. */
  async stop(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => this.#end(node, 'SIGKILL')))
    rmSync(this.#root, { recursive: true, force: true })
  }

  /** The end of a node's log, for error messages. */
  logOf(number: number): string {
    return readFileSync(join(this.#node(number).folder, 'log'), 'utf8').slice(-3000)
  }

  async #make(): Promise<void> {
    const [first, ...others] = this.#nodes as readonly [Node, ...Node[]]
    for (const { folder } of this.#nodes) mkdirSync(join(folder, 'tmp'), { recursive: true, mode: 0o700 })
    execFileSync(
      program('mariadb-install-db'),
      [
        '--no-defaults',
        '--force',
        `--datadir=${join(first.folder, 'data')}`,
        '--auth-root-authentication-method=normal',
        '--skip-test-db',
        ...(userInfo().uid === 0 ? ['--user=root'] : []),
      ],
      { stdio: 'ignore' },
    )
    await this.#launch(first, ['--wsrep-new-cluster'])
    await this.#untilSynced(first)
    await this.ask(0, "CREATE USER 'copy'@'localhost' IDENTIFIED BY 'copy'")
    await this.ask(0, "GRANT RELOAD, PROCESS, LOCK TABLES, REPLICATION CLIENT ON *.* TO 'copy'@'localhost'")
    await this.ask(0, `CREATE DATABASE ${DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci`)
    await this.ask(0, `CREATE USER '${USER}'@'127.0.0.1' IDENTIFIED BY '${PASSWORD}'`)
    await this.ask(0, `GRANT ALL ON ${DATABASE}.* TO '${USER}'@'127.0.0.1'`)
    await this.#end(first, 'SIGTERM')
    // The others start with the same data at the same position, so no state transfer is needed.
    for (const { folder } of others)
      cpSync(join(first.folder, 'data'), join(folder, 'data'), {
        recursive: true,
        filter: (path) => !/galera\.cache|gvwstate\.dat/.test(path),
      })
    await this.#launch(first, ['--wsrep-new-cluster'])
    await this.#untilSynced(first)
    for (const node of others) {
      await this.#launch(node, [])
      await this.#untilSynced(node)
    }
  }

  async #launch(node: Node, options: readonly string[]): Promise<void> {
    const { folder } = node
    rmSync(join(folder, 'sock'), { force: true })
    writeFileSync(join(folder, 'my.cnf'), this.#settingsOf(node), { mode: 0o600 })
    node.server = launch(
      program('mariadbd'),
      [`--defaults-file=${join(folder, 'my.cnf')}`, ...options],
      join(folder, 'log'),
    )
    await once(node.server, 'spawn')
  }

  /** The node's only configuration file, which the scripts of state transfers read, too. */
  #settingsOf({ number, folder, ports: { sql, group, increments, copies } }: Node): string {
    const everyNode = this.#nodes.map((node) => `127.0.0.1:${node.ports.group}`).join(',')
    return `[mysqld]
${userInfo().uid === 0 ? 'user=root' : ''}
datadir=${join(folder, 'data')}
tmpdir=${join(folder, 'tmp')}
socket=${join(folder, 'sock')}
pid-file=${join(folder, 'pid')}
log-error=${join(folder, 'log')}
bind-address=127.0.0.1
port=${sql}
skip-name-resolve
server-id=${number + 1}
character-set-server=utf8mb4
binlog-format=ROW
default-storage-engine=InnoDB
innodb-autoinc-lock-mode=2
innodb-buffer-pool-size=48M
innodb-log-file-size=32M
key-buffer-size=1M
aria-pagecache-buffer-size=8M
performance-schema=OFF
max-connections=200
wsrep-on=ON
wsrep-provider=${PROVIDER}
wsrep-cluster-name=paygate
wsrep-cluster-address=gcomm://${everyNode}
wsrep-node-name=node${number + 1}
wsrep-node-address=127.0.0.1:${group}
wsrep-node-incoming-address=127.0.0.1:${sql}
wsrep-provider-options="gmcast.listen_addr=tcp://127.0.0.1:${group};ist.recv_addr=127.0.0.1:${increments};ist.recv_bind=127.0.0.1:${increments};gcache.size=64M"
wsrep-sst-method=mariabackup
wsrep-sst-auth=copy:copy
wsrep-sst-receive-address=127.0.0.1:${copies}
`
  }

  /** The position of a killed node, determined as Debian's service does at each start. */
  #positionOf({ folder }: Node): string {
    const log = join(folder, 'recovery.log')
    rmSync(log, { force: true })
    execFileSync(
      program('mariadbd'),
      [`--defaults-file=${join(folder, 'my.cnf')}`, '--wsrep-recover', `--log-error=${log}`],
      { stdio: 'ignore' },
    )
    const position = /Recovered position: (\S+)/.exec(readFileSync(log, 'utf8'))?.[1]
    if (position === undefined) throw new Error(`the position of ${folder} is unknown`)
    return position
  }

  async #untilSynced(node: Node): Promise<void> {
    const deadlineMs = performance.now() + START_MS
    for (;;) {
      const state = await this.#stateOf(node)
      if (state === 'Synced Primary') return
      if (node.server?.exitCode !== null || performance.now() > deadlineMs)
        throw new Error(`node ${node.number + 1} is ${state}:\n${this.logOf(node.number)}`)
      await delay(POLL_MS)
    }
  }

  async #stateOf({ number }: Node): Promise<string> {
    try {
      const rows = await this.ask(
        number,
        "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_local_state_comment', 'wsrep_cluster_status')",
      )
      const values = new Map(rows.map((row) => [row['Variable_name'] as string, row['Value'] as string]))
      return `${values.get('wsrep_local_state_comment')} ${values.get('wsrep_cluster_status')}`
    } catch {
      return 'unreachable'
    }
  }

  async #end(node: Node, signal: NodeJS.Signals): Promise<void> {
    const { server } = node
    node.server = null
    if (server) await end(server, signal)
  }

  #node(number: number): Node {
    const node = this.#nodes[number]
    if (!node) throw new Error(`there is no node ${number}`)
    return node
  }
}

function program(name: string): string {
  const path = findProgram(name)
  if (path === null) throw new Error(`${name} is missing: run bin/system-packages --trials`)
  return path
}
