import { Session, type Profiler } from 'node:inspector'
import { join } from 'node:path'
import { MONTHLY } from '../support/factories.ts'
import { startScenario } from '../support/scenario.ts'

const SOURCE = `file://${join(import.meta.dirname, '../../src')}/`
/** Those before it load what is loaded once. */
const WARM_UP = 2
const PAYMENTS = 3

/**
 * The files of `src` with a function that runs in each of several payments by the test method, from the request to the statement COMMIT,
 * on the thread that serves requests, as V8 counts calls.
 */
export async function executedFiles(): Promise<string[]> {
  const scenario = await startScenario()
  const session = new Session()
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  const take = (): ReadonlySet<string> => {
    let files: ReadonlySet<string> = new Set()
    session.post('Profiler.takePreciseCoverage', (_error, { result }) => (files = calledIn(result)))
    return files
  }
  let atCommit: ReadonlySet<string> | null = null
  const { pool } = scenario.service.ctx.db
  const lend = pool.take.bind(pool)
  pool.take = async () => {
    const connection = await lend()
    const command = connection.command.bind(connection)
    return Object.assign(connection, {
      command: (sql: string) => {
        if (sql === 'COMMIT') atCommit ??= take()
        return command(sql)
      },
    })
  }
  try {
    const price = (await scenario.plan('pro', MONTHLY)).prices[0]
    const runs: ReadonlySet<string>[] = []
    for (let number = 0; number < WARM_UP + PAYMENTS; number += 1) {
      const checkout = await scenario.checkout({ price_id: price, external_ref: `user-${number}` })
      take()
      atCommit = null
      await scenario.pay(checkout)
      runs.push(atCommit ?? new Set())
    }
    const [first = new Set<string>(), ...others] = runs.slice(WARM_UP)
    return [...first].filter((file) => others.every((run) => run.has(file))).sort()
  } finally {
    pool.take = lend
    session.disconnect()
    await scenario.service.stop()
  }
}

/** Files of `src` with a function that was called. */
function calledIn(scripts: readonly Profiler.ScriptCoverage[]): ReadonlySet<string> {
  const called = scripts.filter(
    ({ url, functions }) => url.startsWith(SOURCE) && functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0),
  )
  return new Set(called.map(({ url }) => url.slice(SOURCE.length)))
}
