import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { UsageError } from './usage-error.ts'

/** What the environment or a file says. */
export interface Settings {
  readonly baseUrl: string
  readonly apiKey: string
  readonly apiSecret: string
  /** Null if none is set. */
  readonly webhookSecret: string | null
}

/** The environment goes before the file. Throws `UsageError` naming all that is missing. */
export function readSettings(envFile: string | undefined): Settings {
  const values: NodeJS.Dict<string> = { ...(envFile === undefined ? {} : readEnvFile(envFile)), ...setOnes() }
  const names = ['PAYGATE_URL', 'PAYGATE_API_KEY', 'PAYGATE_API_SECRET']
  const missing = names.filter((name) => !values[name])
  if (missing.length > 0) throw new UsageError(`set ${missing.join(', ')}, or name a file with them by --env-file`)
  if (!/^https?:\/\//i.test(values['PAYGATE_URL'] ?? ''))
    throw new UsageError('PAYGATE_URL must be the address of the service, such as https://billing.example.com')
  const [baseUrl = '', apiKey = '', apiSecret = ''] = names.map((name) => values[name])
  return { baseUrl, apiKey, apiSecret, webhookSecret: values['PAYGATE_WEBHOOK_SECRET'] ?? null }
}

/** An empty variable is one that is not set. */
function setOnes(): NodeJS.Dict<string> {
  return Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== ''))
}

function readEnvFile(path: string): NodeJS.Dict<string> {
  return parseEnv(readNamed(path, '--env-file'))
}

/** The text of a file that an option names. */
export function readNamed(path: string, option: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    throw new UsageError(`${option}: ${path} cannot be read`)
  }
}
