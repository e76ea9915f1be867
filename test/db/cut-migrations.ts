import sinon from 'sinon'
import { DataSource, type QueryRunner } from 'typeorm'

/**
 * From now on each run of migrations ends with an error after a statement that ended no earlier run, until `restore`. `seen` has those
 * statements.
 */
export function cutAfterEachChange(): { readonly seen: ReadonlySet<string>; readonly restore: () => void } {
  const seen = new Set<string>()
  const create = Reflect.get(DataSource.prototype, 'createQueryRunner')
  const stub = sinon.stub(DataSource.prototype, 'createQueryRunner').callsFake(function (this: DataSource) {
    return cuttingRunner(create.call(this), seen)
  })
  return { seen, restore: () => stub.restore() }
}

function cuttingRunner(runner: QueryRunner, seen: Set<string>): QueryRunner {
  const query = runner.query.bind(runner) as (...given: unknown[]) => Promise<unknown>
  runner.query = async (...given: unknown[]) => {
    const answer = await query(...given)
    const statement = JSON.stringify(given)
    // Each run takes the lease with its own token.
    const isChange = !/^\s*(SELECT|SHOW|SET|UPDATE schema_lease)\b/i.test(String(given[0]))
    if (isChange && !seen.has(statement)) {
      seen.add(statement)
      throw new Error(`cut after ${statement}`)
    }
    return answer as never
  }
  return runner
}
