import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { openDatabase, type Database, type Target } from '#db/connect.ts'
import { embeddedSetup, type Family } from '#embedded/setup.ts'
import { startEmbedded } from '#embedded/start-embedded.ts'
import { DAY_MS, type RealTime } from '#shared/time.ts'

/** A database that only this process uses, and that is removed afterwards. */
export interface PrivateDatabase {
  readonly db: Database
  readonly target: Target
}

export interface PrivatePlace {
  readonly home: string
  readonly family: Family
  readonly now: RealTime
}

const FOLDER = 'copy-of-backup-'
/** The data may be lost in a power cut. */
const FLAGS = [
  '--innodb-flush-log-at-trx-commit=0',
  '--innodb-doublewrite=OFF',
  '--innodb-buffer-pool-size=256M',
  '--loose-innodb-log-file-size=256M',
  '--loose-innodb-redo-log-capacity=512M',
  '--max-allowed-packet=256M',
]
const STATEMENT_SECONDS = 3600
const STOP_MS = 35_000
const POLL_MS = 20

/** Runs the work on an empty database of the family, on a server of its own below `home`. */
export async function withPrivateDatabase<T>(
  { home, family, now }: PrivatePlace,
  work: (copy: PrivateDatabase) => Promise<T>,
): Promise<T> {
  await mkdir(home, { recursive: true, mode: 0o700 })
  await removeLeftovers(home, now)
  const folder = await mkdtemp(join(home, FOLDER))
  const options = { family, flags: FLAGS }
  const setup = embeddedSetup(folder, undefined, options)
  try {
    const { connection, release } = await startEmbedded(folder, options)
    try {
      const url = `mysql://${connection.user}@localhost/${connection.database}?socketPath=${encodeURIComponent(connection.socketPath)}`
      const { db, close } = await openDatabase(
        { databaseUrl: url, home: folder },
        { statementSeconds: STATEMENT_SECONDS },
      )
      try {
        return await work({ db, target: connection })
      } finally {
        await close()
      }
    } finally {
      release()
    }
  } finally {
    await untilGone(setup.supervisorSocket, join(dirname(setup.dataDirectory), 'server.pid'))
    for (const path of [folder, dirname(setup.serverSocket)])
      await rm(path, { recursive: true, force: true, maxRetries: 10 })
  }
}

/** The server stops a moment after its last user. */
async function untilGone(...paths: readonly string[]): Promise<void> {
  const deadline = performance.now() + STOP_MS
  while (paths.some((path) => existsSync(path)) && performance.now() < deadline) await delay(POLL_MS)
}

/** Removes what killed programs left; their servers ended with them. */
async function removeLeftovers(home: string, now: RealTime): Promise<void> {
  for (const name of await readdir(home)) {
    if (!name.startsWith(FOLDER)) continue
    // Another program may have removed it meanwhile.
    const found = await stat(join(home, name)).catch(() => null)
    if (found && found.mtimeMs < now.getTime() - DAY_MS) await rm(join(home, name), { recursive: true, force: true })
  }
}
