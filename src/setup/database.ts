import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createDatabase, databaseState, localPort, PORT_STATEMENT, provisionStatements } from '#db/create-database.ts'
import { pendingMigrations, runMigrations, EXPANDING } from '#db/migrate.ts'
import type { Context } from '#context.ts'
import { AppError } from '#shared/errors.ts'
import type { Answers } from './answers.ts'
import { hasProgram, runProgram } from './run-program.ts'
import { pending, unchanged, type PartState } from './step.ts'

/** Checks that the server lets Paygate in and has its database. Paygate's own server is made by the first program that uses it. */
export async function inspectDatabase({ databaseUrl }: Answers, own: OwnServer): Promise<PartState> {
  if (databaseUrl === null) return inspectOwnServer(own)
  const state = await databaseState(databaseUrl)
  if (state === 'usable') return unchanged('the server lets Paygate in')
  const make = state === 'missing' ? () => createDatabase(databaseUrl) : () => provision(databaseUrl)
  const what = state === 'missing' ? 'the database' : 'the database and its user'
  return pending(`make ${what}`, async () => {
    await make()
    if ((await databaseState(databaseUrl)) !== 'usable')
      throw new AppError(
        'invalid_request',
        'the server has this user with another password: correct the answer "database", or change the password there',
      )
    return `made ${what}`
  })
}

/** How to make Paygate's private server. */
export interface OwnServer {
  readonly home: string
  /** Makes it, with its tables; null if the service does so when it starts. */
  readonly make: (() => Promise<unknown>) | null
}

function inspectOwnServer({ home, make }: OwnServer): PartState {
  const folder = join(home, 'database')
  const what = `Paygate's own server in ${folder}`
  if (existsSync(join(folder, 'data'))) return unchanged(what)
  return pending(`make ${what}`, async () => {
    await make?.()
    return make ? `made ${what}` : `${what}, which the service makes when it starts`
  })
}

const MAKE_THERE = 'make the database and its user there, and run this again'

/** Connects as root of the machine, which a local server accepts on its socket. */
async function provision(url: string): Promise<void> {
  const port = localPort(url)
  const program = ['mariadb', 'mysql'].find(hasProgram)
  if (port === null || program === undefined)
    throw new AppError(
      'invalid_request',
      `the server refuses the user or the password, and its root is not reachable from here: ${MAKE_THERE}`,
    )
  const options = ['--batch', '--skip-column-names', '--user=root', '--protocol=socket']
  const own = await runProgram(program, options, PORT_STATEMENT)
  if (Number(own) !== port)
    throw new AppError(
      'invalid_request',
      `the server at port ${port} refuses the user or the password, and is not the one of this machine's socket: ${MAKE_THERE}`,
    )
  await runProgram(program, options, provisionStatements(url))
}

/** A new database gets its tables. One with tables of an older version is left to `migrate`, which shows what it does first. */
export async function inspectSchema({ db }: Pick<Context, 'db'>): Promise<PartState> {
  const missing = await pendingMigrations(db)
  if (missing.length === 0) return unchanged('the tables are those of this version')
  if (missing.length < EXPANDING.length)
    throw new AppError(
      'invalid_request',
      `${missing.length} migrations are pending: back up, then run billing-cli migrate`,
    )
  return pending('make the tables', async () => `made the tables by ${(await runMigrations(db)).length} migrations`)
}
