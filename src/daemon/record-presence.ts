import { recordDaemon, recordDaemonStop } from '#backups/daemons/store.ts'
import type { Context } from '#context.ts'
import { MIGRATIONS } from '#db/migrate.ts'
import { productVersion } from '#product-version.ts'
import { withTimeout } from '#shared/budget.ts'
import { SECOND_MS } from '#shared/time.ts'
import { daemonName } from './daemon-name.ts'

/** Three times per minute: to `migrate`, a daemon is running if it recorded itself in the last minute. */
const EVERY_MS = 20 * SECOND_MS
/** An unreachable database must not keep the daemon from stopping. */
const STOP_MS = 2 * SECOND_MS

export interface Presence {
  readonly stop: () => Promise<void>
}

/** Records now and every 20 s that this daemon runs, and which migrations it knows, so that `migrate` does not break a running daemon. */
export async function recordPresence(ctx: Context): Promise<Presence> {
  const name = daemonName()
  const daemon = { name, version: productVersion(), migrations: MIGRATIONS.map((each) => each.name) }
  const record = (): Promise<void> => recordDaemon(ctx.db, daemon)
  const warn = (error: unknown): void => ctx.log.warn({ error }, 'the daemon could not record that it is running')
  await record()
  const timer = setInterval(() => void record().catch(warn), EVERY_MS)
  return {
    async stop() {
      clearInterval(timer)
      const late = new Error(`no answer in ${STOP_MS} ms`)
      await withTimeout(recordDaemonStop(ctx.db, name), STOP_MS, late).catch(warn)
    },
  }
}
