import { loadConfig } from '#config/config.ts'
import { openContext } from '#open-context.ts'
import { runSender } from '#webhooks/sender.ts'

/** A sender in a separate process, for tests that kill it. Stops gracefully on SIGTERM. */
const { ctx, close } = await openContext({ config: loadConfig(), thread: 'sender' })
const stop = new AbortController()
process.on('SIGTERM', () => stop.abort())
await runSender(ctx, { signal: stop.signal })
await close()
process.exit(0)
