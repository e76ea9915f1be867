import { join } from 'node:path'
import { startDaemonProcess } from '../test/support/daemon-process.ts'
import { testDatabase } from '../test/support/database.ts'
import type { FloorOrder } from './floors/http.ts'
import { inRounds, type BenchOptions } from './row.ts'
import { profiled } from './profiled.ts'
import type { Shop } from './shop.ts'
import { startWorker } from './worker.ts'
import type { LoadOrder, LoadResult } from './workers/load.ts'

/** What one side is asked in a round. */
export type Load = Omit<LoadOrder, 'origin' | 'seconds'>

interface Sides {
  /** `number` counts the rounds from 0. */
  ours(number: number): Load
  floor(number: number): Load
}

export const ROUND_SECONDS = 2.5
const QUICK_SECONDS = 0.2

/** Loads the daemon and the floor's server alternately, from a process that is neither's; the three share the machine as a pair would. */
export async function loadAlternately(
  shop: Shop,
  options: BenchOptions,
  sides: Sides,
): Promise<{ ours: LoadResult; floor: LoadResult }[]> {
  const { socketPath, name: database } = testDatabase()
  const daemon = await startDaemonProcess(profiled('daemon'))
  const load = startWorker<LoadOrder, LoadResult>(join('workers', 'load.ts'))
  const floor = startWorker<FloorOrder, string>(join('floors', 'http.ts'))
  try {
    const floorUrl = await floor.ask({ socketPath, database, appId: shop.app.app.id, secret: shop.app.secret })
    const seconds = options.isQuick ? QUICK_SECONDS : ROUND_SECONDS
    return await inRounds(options, async (number) => ({
      floor: await load.ask({ ...sides.floor(number), origin: floorUrl, seconds }),
      ours: await load.ask({ ...sides.ours(number), origin: daemon.url, seconds }),
    }))
  } finally {
    await Promise.all([load.stop(), floor.stop()])
    await daemon.stop()
  }
}
