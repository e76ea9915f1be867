import './without-fetch.ts'
import { ConfigError, loadConfig, type Config } from '#config.ts'
import type { EmbeddedDatabase } from '#db/embedded.ts'

async function main(): Promise<void> {
  const settings = loadConfig()
  const early = settings.databaseUrl === null ? startDatabase(settings) : null
  const { serve } = await import('./serve.ts')
  await serve(settings)
  await (await early)?.release()
}

/** Starts the server while the modules are loaded. An error is reported when the database is opened. */
async function startDatabase({ home }: Config): Promise<EmbeddedDatabase | null> {
  const { startEmbedded } = await import('#db/embedded.ts')
  return startEmbedded(home).catch(() => null)
}

try {
  await main()
} catch (error) {
  if (error instanceof ConfigError) process.stderr.write(`billing-daemon: ${error.message}\n`)
  else {
    const [{ openLog }, { messageOf }] = await Promise.all([import('#shared/log.ts'), import('#shared/errors.ts')])
    openLog('info', { thread: 'daemon' }).fatal({ error }, `the daemon cannot start: ${messageOf(error)}`)
  }
  process.exit(1)
}
