import { existsSync, linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Config } from '#config/config.ts'
import type { Context } from '#context.ts'
import { openDatabase, type OpenOptions } from '#db/connect.ts'
import { parseKeyring, type Keyring } from '#shared/crypto.ts'
import { openLog } from '#shared/log.ts'
import { systemClock, type Clock } from '#shared/time.ts'

export interface OpenContextOptions extends OpenOptions {
  readonly config: Config
  /** Goes into each log line: `daemon`, `cli`, the name of a job. */
  readonly thread: string
  readonly clock?: Clock
  readonly wakeSender?: () => void
  readonly count?: Context['count']
}

export interface OpenContext {
  readonly ctx: Context
  readonly close: () => Promise<void>
}

/** Connects to the database and makes the context that commands work with. The caller closes it. */
export async function openContext(options: OpenContextOptions): Promise<OpenContext> {
  const { config, thread, clock = systemClock, wakeSender = () => undefined, count = () => undefined } = options
  const log = openLog(config.logLevel, { thread })
  const keyring = openKeyring(config)
  const { db, close } = await openDatabase(config, options)
  return { ctx: { config, db, clock, log, keyring, wakeSender, count }, close }
}

/** The keys of the settings; in development, without any, the one generated under `home`. */
export function openKeyring(config: Config): Keyring {
  return parseKeyring(encryptionKeys(config))
}

/** The keys themselves, in the form of the setting. */
export function encryptionKeys(config: Config): string {
  return config.encryptionKeys ?? generatedKey(config.home)
}

function generatedKey(home: string): string {
  const path = join(home, 'encryption-key')
  if (!existsSync(path)) writeKey(home, path)
  return readFileSync(path, 'utf8').trim()
}

/** Writes a draft and links it into place: of processes that start together one key wins, and none is read half-written. */
function writeKey(home: string, path: string): void {
  mkdirSync(home, { recursive: true, mode: 0o700 })
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`
  writeFileSync(draft, `dev:${randomBytes(32).toString('base64')}\n`, { flag: 'wx', mode: 0o600 })
  try {
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    unlinkSync(draft)
  }
}
