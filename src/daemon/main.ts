import './without-fetch.ts'
import { ConfigError, loadConfig, type Config } from '#config/config.ts'

async function main(): Promise<void> {
  const settings = loadConfig()
  const release = settings.databaseUrl === null ? await beginDatabase(settings) : null
  const { rehearseStart, serve } = await import('./serve.ts')
  if (process.argv.includes('--check')) {
    await rehearseStart(settings)
    process.exit()
  }
  await serve(settings)
  await release?.()
}

/**
 * Begins to start the database server, which continues while the modules are loaded: that keeps the event loop busy for 200 ms. Returns a
 * function that releases the server. An error is reported when the database is opened.
 */
async function beginDatabase({ home }: Config): Promise<() => Promise<void>> {
  const { startEmbedded } = await import('#embedded/start-embedded.ts')
  const started = startEmbedded(home).catch(() => null)
  return async () => (await started)?.release()
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
