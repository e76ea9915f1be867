import { loadConfig } from '#config/config.ts'
import { openContext } from '#open-context.ts'
import { answerOrders } from '../worker.ts'
import { deliverDue } from '../../test/support/deliver-due.ts'

/** As the daemon's thread. */
const POOL_SIZE = 6
const opening = openContext({ config: loadConfig(), thread: 'bench', poolSize: POOL_SIZE })

/** Delivers all that is due; how long it took. */
answerOrders(async (): Promise<number> => {
  const { ctx } = await opening
  const startedMs = performance.now()
  await deliverDue(ctx)
  return performance.now() - startedMs
})
