import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { startEmbedded } from '#embedded/start-embedded.ts'
import { embeddedSetup } from '#embedded/setup.ts'
import { startDaemonProcess } from '../test/support/daemon-process.ts'
import { scratchFolder } from '../test/support/scratch.ts'
import { until } from '../test/support/until.ts'
import { profiled } from './profiled.ts'
import { inRounds, type Bench } from './row.ts'

/** From the start of the process to the first request that it can take, database server included. */
export const readyBench: Bench = {
  rows: [
    {
      name: 'ready',
      what: 'daemon ready on an existing database',
      floor: 'mariadbd and Koa',
      unit: 'ms',
      judged: 'multiple',
      must: 2,
      goal: 1.5,
    },
  ],
  async run(options) {
    const [ours, floor] = [scratchFolder('ready'), scratchFolder('ready-floor')]
    // Makes both databases, ours with its tables.
    await timeDaemon(ours)
    const { release } = await startEmbedded(floor)
    release()
    await untilStopped(floor)
    const rounds = await inRounds(options, async () => ({
      floor: await timeFloor(floor),
      ours: await timeDaemon(ours),
    }))
    return { ready: { rounds } }
  },
}

async function timeDaemon(home: string): Promise<number> {
  const startedMs = performance.now()
  const daemon = await startDaemonProcess({ BILLING_HOME: home, BILLING_DATABASE_URL: '', ...profiled('ready') })
  const elapsedMs = performance.now() - startedMs
  await daemon.stop()
  await untilStopped(home)
  return elapsedMs
}

async function timeFloor(home: string): Promise<number> {
  const setup = embeddedSetup(home)
  rmSync(setup.serverSocket, { force: true })
  const startedMs = performance.now()
  const file = join(import.meta.dirname, 'floors', 'start.ts')
  const child = spawn(process.execPath, [file, JSON.stringify(setup.server), setup.serverSocket], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  await once(child.stdout, 'data')
  const elapsedMs = performance.now() - startedMs
  child.kill()
  await exited
  return elapsedMs
}

/** The server stops a moment after its last user. */
async function untilStopped(home: string): Promise<void> {
  await until(() => !existsSync(join(home, 'database', 'server.pid')))
}
