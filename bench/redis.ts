import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { childEnvironment } from '#config/environment.ts'
import { findProgram } from '#embedded/setup.ts'
import { scratchFolder } from '../test/support/scratch.ts'
import { until } from '../test/support/until.ts'

/** The version that BullMQ's figures in the report are of. */
const PACKAGES = ['bullmq@6.7.0', 'ioredis@5']
/** Kept between runs; not a part of this project's packages. */
const FOLDER = join(import.meta.dirname, '..', 'var', 'bench', 'bullmq')

export interface Redis {
  readonly socket: string
  /** The folder with BullMQ. */
  readonly packages: string
  stop(): Promise<void>
}

/** Starts a Redis that writes its log each second, beside BullMQ; installs what is missing. Returns a sentence where it cannot. */
export async function startRedis(): Promise<Redis | string> {
  const server = findProgram('redis-server') ?? installRedis()
  if (server === null) return 'skipped: there is no redis-server, and only root on Debian can install it'
  if (!existsSync(join(FOLDER, 'node_modules', 'bullmq')) && !installBullMq()) {
    return 'skipped: npm could not install bullmq'
  }
  const folder = scratchFolder('redis')
  const socket = join(folder, 'redis.sock')
  const settings = [
    '--port 0',
    `--unixsocket ${socket}`,
    `--dir ${folder}`,
    '--appendonly yes',
    '--appendfsync everysec',
  ]
  const child = spawn(
    server,
    settings.flatMap((setting) => setting.split(' ')),
    { stdio: 'ignore' },
  )
  const exited = once(child, 'exit')
  await until(() => answers(socket))
  return {
    socket,
    packages: FOLDER,
    async stop() {
      child.kill()
      await exited
    },
  }
}

/** Without its service, which would take the default port. */
function installRedis(): string | null {
  if (process.getuid?.() !== 0 || findProgram('apt-get') === null) return null
  const quiet = { RUNLEVEL: '1', SYSTEMD_OFFLINE: '1', DEBIAN_FRONTEND: 'noninteractive' }
  const env = childEnvironment(quiet)
  const install = () =>
    spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'redis-server'], { env, stdio: 'ignore' })
  if (install().status !== 0) {
    spawnSync('apt-get', ['update', '-qq'], { env, stdio: 'ignore' })
    install()
  }
  return findProgram('redis-server')
}

function installBullMq(): boolean {
  mkdirSync(FOLDER, { recursive: true })
  const options = ['--prefix', FOLDER, '--no-audit', '--no-fund', '--ignore-scripts']
  return spawnSync('npm', ['install', ...options, ...PACKAGES], { stdio: 'ignore' }).status === 0
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
