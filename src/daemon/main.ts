import './without-fetch.ts'
import { ConfigError, loadConfig, type Config } from '#config/config.ts'

const USAGE = `usage: billing-daemon [--check]
Serves the API and the pages, and runs the jobs, until a signal stops it. The settings are variables of the environment: see .env.example.
  --check  says whether it would start, and ends
`

async function main(options: readonly string[]): Promise<void> {
  if (options.includes('--help')) {
    process.stdout.write(USAGE)
    return
  }
  const unknown = options.find((option) => option !== '--check')
  if (unknown !== undefined) {
    process.stderr.write(`billing-daemon: unknown argument ${unknown}\n${USAGE}`)
    process.exit(2)
  }
  const settings = loadConfig()
  const release = settings.databaseUrl === null ? await beginDatabase(settings) : null
  const { rehearseStart, serve } = await import('./serve.ts')
  if (options.includes('--check')) {
    await rehearseStart(settings)
    process.exit()
  }
  await serve(settings)
  await release?.()
}

/**
 * Starts the database server in the background, while the modules load (which blocks the event loop for 200 ms). Returns a function that
 * releases the server. Opening the database reports any error.
 */
async function beginDatabase({ home }: Config): Promise<() => Promise<void>> {
  const { startEmbedded } = await import('#embedded/start-embedded.ts')
  const started = startEmbedded(home).catch(() => null)
  return async () => (await started)?.release()
}

try {
  await main(process.argv.slice(2))
} catch (error) {
  if (error instanceof ConfigError) process.stderr.write(`billing-daemon: ${error.message}\n`)
  else {
    const [{ openLog }, { messageOf }] = await Promise.all([import('#shared/log.ts'), import('#shared/errors.ts')])
    openLog('info', { thread: 'daemon' }).fatal({ error }, `the daemon cannot start: ${messageOf(error)}`)
  }
  process.exit(1)
}
