import { execFileSync, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createConnection } from 'mysql2/promise'
import { embeddedSetup, type EmbeddedSetup } from '#embedded/setup.ts'
import { freePorts } from '../support/free-ports.ts'
import { end, launch, untilConnected } from './server-process.ts'

const PASSWORD = 'a,b@c'

/** A MariaDB or MySQL server of its own, with keys for TLS, as it has by itself. */
export class SingleServer {
  readonly port: number
  readonly #root: string
  readonly #setup: EmbeddedSetup
  #process: ChildProcess | null = null

  private constructor(root: string, setup: EmbeddedSetup, port: number) {
    this.#root = root
    this.#setup = setup
    this.port = port
  }

  /** Starts the first server program of these folders. */
  static async start(directories?: readonly string[]): Promise<SingleServer> {
    const root = mkdtempSync(join(tmpdir(), 'paygate-server-'))
    const [port = 0] = await freePorts(1)
    const server = new SingleServer(root, embeddedSetup(root, directories), port)
    await server.#make()
    return server
  }

  /** `BILLING_DATABASE_URL` at this address, such as a proxy's. */
  url(host = '127.0.0.1', port = this.port): string {
    return `mysql://paygate:${encodeURIComponent(PASSWORD)}@${host}:${port}/paygate`
  }

  /** Kills it with -9; it is up again when this returns. */
  async killAndRestart(): Promise<void> {
    if (this.#process) await end(this.#process)
    await this.#launch()
  }

  async stop(): Promise<void> {
    if (this.#process) await end(this.#process)
    rmSync(this.#root, { recursive: true, force: true })
  }

  async #make(): Promise<void> {
    const [install = '', ...options] = withKeys(this.#setup.install)
    execFileSync(install, [...options, `--datadir=${this.#setup.dataDirectory}`], { stdio: 'ignore' })
    await this.#launch()
    const admin = await this.#administer()
    await admin.query('CREATE DATABASE paygate CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci')
    await admin.query(`CREATE USER paygate@'127.0.0.1' IDENTIFIED BY '${PASSWORD}'`)
    await admin.query("GRANT ALL ON paygate.* TO paygate@'127.0.0.1'")
    await admin.end()
  }

  async #launch(): Promise<void> {
    const [program = '', ...options] = withKeys(this.#setup.server).filter((option) => option !== '--skip-networking')
    const all = [...options, '--bind-address=127.0.0.1', `--port=${this.port}`]
    this.#process = launch(program, all, this.#setup.logFile)
    await (await this.#administer()).end()
  }

  #administer() {
    const { serverSocket, logFile } = this.#setup
    return untilConnected(() => createConnection({ socketPath: serverSocket, user: 'root' }), logFile)
  }
}

function withKeys(options: readonly string[]): string[] {
  return options.filter((option) => !option.includes('auto-generate'))
}
