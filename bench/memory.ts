import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { startDaemonProcess } from '../test/support/daemon-process.ts'
import { inRounds, type Bench } from './row.ts'

/** Sweeps of the start are over by then, and Node has given back what they took, which it does after 8 to 10 s. */
const IDLE_MS = 12_000
const QUICK_MS = 200

/** The daemon with all its threads, on a database that is elsewhere, idle. */
export const memoryBench: Bench = {
  rows: [
    {
      name: 'memory',
      what: 'memory at rest (RSS), without the database',
      floor: null,
      unit: 'MB',
      judged: 'value',
      must: 220,
      goal: 150,
    },
  ],
  async run(options) {
    const rounds = await inRounds(options, async () => {
      const daemon = await startDaemonProcess()
      await delay(options.isQuick ? QUICK_MS : IDLE_MS)
      const ours = processTree(daemon.pid).reduce((sum, pid) => sum + residentMb(pid), 0)
      await daemon.stop()
      return { ours, floor: null }
    })
    return { memory: { rounds } }
  },
}

function residentMb(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kilobytes ?? NaN) / 1024
}

/** A process and those that it started. */
function processTree(pid: number): number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  )
  return [pid, ...children.flatMap(processTree)]
}
