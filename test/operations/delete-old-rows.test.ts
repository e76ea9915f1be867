import { expect } from 'chai'
import { describe, it } from 'mocha'
import { insertJobRun } from '#db/store.ts'
import { deleteOldRows } from '#operations/delete-old-rows.ts'
import { testContext } from '../support/context.ts'

describe('rows that are kept for a time', () => {
  it('are removed once it is over: answers of idempotency keys after a day, job runs after 30 days', async () => {
    const ctx = testContext()
    const insertKey = (key: string): Promise<unknown> =>
      ctx.db.query(
        `INSERT INTO idempotency_keys (app_id, path_hash, idempotency_key, request_hash, lease_token, lease_until, created_at)
         VALUES (1, 'p', ?, 'r', 'l', ?, ?)`,
        [key, ctx.clock.now(), ctx.clock.now()],
      )
    const noteRun = (job: string): Promise<void> =>
      insertJobRun(ctx.db, {
        job,
        daemon: 'host:1',
        startedAt: ctx.clock.now(),
        finishedAt: ctx.clock.now(),
        outcome: 'done',
        summary: { expired: 1 },
      })
    await noteRun('older')
    ctx.clock.advance('29d')
    for (let i = 0; i < 120; i += 1) await insertKey(`old-${i}`)
    ctx.clock.advance('24h')
    await insertKey('new')
    await noteRun('newer')
    expect(await deleteOldRows(ctx)).to.deep.equal({ keysDeleted: 0, runsDeleted: 0 })
    ctx.clock.advance('1s')
    expect(await deleteOldRows(ctx)).to.deep.equal({ keysDeleted: 120, runsDeleted: 1 })
    const keys: { name: string }[] = await ctx.db.query('SELECT idempotency_key AS name FROM idempotency_keys')
    const runs: { job: string }[] = await ctx.db.query('SELECT job FROM job_runs')
    expect([...keys.map(({ name }) => name), ...runs.map(({ job }) => job)]).to.deep.equal(['new', 'newer'])
  })
})
