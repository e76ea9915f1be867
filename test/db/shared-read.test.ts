import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { apps, type App } from '#apps/store.ts'
import type { Queries } from '#db/queries.ts'
import { MAX_CALLERS, rowsBy, SharedRead } from '#db/shared-read.ts'
import { testContext, type TestContext } from '../support/context.ts'
import { anApp } from '../support/factories.ts'
import { until } from '../support/until.ts'

describe('reads by key that concurrent callers share', () => {
  let ctx: TestContext
  let apiKeys: string[]
  /** The keys of each statement that was sent. */
  let sent: (readonly string[])[]
  let reads: SharedRead<string, Readonly<App>>
  const byKey = rowsBy(apps, 'apiKey')

  beforeEach(async () => {
    ctx = testContext()
    apiKeys = []
    for (const name of ['Books', 'Films', 'Games']) apiKeys.push((await anApp(ctx, { name })).apiKey)
    sent = []
    reads = new SharedRead(
      (key) => key,
      async (db, keys) => {
        sent.push(keys)
        const found = await Promise.all(keys.map((key) => byKey.find(db, key)))
        return new Map(found.flatMap((app) => (app ? [[app.apiKey, app]] : [])))
      },
    )
  })

  /** A connection whose reads return when the test lets them, with what they read before. */
  function held() {
    const opened: (() => void)[] = []
    const run = async <T>(read: (db: Queries) => Promise<T>): Promise<T> => {
      const rows = await read(ctx.db)
      await new Promise<void>((resolve) => opened.push(resolve))
      return rows
    }
    return { run, opened }
  }

  it('send one statement for all callers that come while another is under way, and give each its own row', async () => {
    const [books, films, games] = apiKeys as [string, string, string]
    const found = await Promise.all([books, films, games, films, 'pk_none'].map((key) => reads.find(ctx.db, key)))
    expect(found.map((app) => app?.name ?? null)).to.deep.equal(['Books', 'Films', 'Games', 'Films', null])
    expect(sent).to.deep.equal([[books], [films, games, 'pk_none']])
  })

  it('never answer from a read that began before the call', async () => {
    const [books] = apiKeys as [string]
    const { run, opened } = held()
    const before = reads.find(ctx.db, books, 'held', run)
    await until(() => opened.length === 1)
    await ctx.db.update(apps, { apiKey: books }, { name: 'Revoked' })
    const after = reads.find(ctx.db, books, 'held', run)
    opened[0]!()
    expect((await before)?.name).to.equal('Books')
    await until(() => opened.length === 2)
    opened[1]!()
    expect((await after)?.name).to.equal('Revoked')
  })

  it('do not wait behind one that hangs', async () => {
    const [books, films] = apiKeys as [string, string]
    const { run, opened } = held()
    const hanging = reads.find(ctx.db, books, 'held', run)
    await until(() => opened.length === 1)
    const next = reads.find(ctx.db, films, 'held', run)
    await until(() => opened.length === 2)
    opened[1]!()
    expect((await next)?.name).to.equal('Films')
    opened[0]!()
    expect((await hanging)?.name).to.equal('Books')
  })

  it(`serve ${MAX_CALLERS} callers at most, and further ones at once with another statement`, async () => {
    const [books] = apiKeys as [string]
    const { run, opened } = held()
    const all = Array.from({ length: 2 * MAX_CALLERS + 2 }, () => reads.find(ctx.db, books, 'held', run))
    // The first one, two full batches, and the last one, which waits.
    await until(() => opened.length >= 3)
    for (let index = 0; index < 4; index += 1) {
      await until(() => opened.length > index)
      opened[index]!()
    }
    const found = await Promise.all(all)
    expect(found.every((app) => app?.name === 'Books')).to.equal(true)
    expect(sent).to.have.length(4)
  })

  for (const [what, isRead] of [
    ['the failed statement', true],
    ['the connection that never came', false],
  ] as const) {
    it(`fail only for those who shared ${what}`, async () => {
      const [books] = apiKeys as [string]
      let isBroken = true
      const run = async <T>(read: (db: Queries) => Promise<T>): Promise<T> => {
        const rows = isRead || !isBroken ? await read(ctx.db) : null
        if (rows === null || isBroken) throw new Error('lost')
        return rows
      }
      const failed = [1, 2].map(() => reads.find(ctx.db, books, 'lossy', run).catch((error: unknown) => error))
      for (const answer of await Promise.all(failed)) expect(answer).to.be.an.instanceOf(Error)
      isBroken = false
      expect((await reads.find(ctx.db, books, 'lossy', run))?.name).to.equal('Books')
    })
  }

  it('share nothing between groups', async () => {
    const [books] = apiKeys as [string]
    const groups = ['known', 'stranger', 'known', 'stranger']
    await Promise.all(groups.map((group) => reads.find(ctx.db, books, group, (read) => read(ctx.db))))
    expect(sent).to.have.length(4)
  })

  it('find rows by a list of any length up to the maximum', async () => {
    const keys = [...apiKeys, ...Array.from({ length: MAX_CALLERS - 2 }, (_, index) => `pk_${index}`)]
    const found = await Promise.all(keys.map((key) => byKey.find(ctx.db, key)))
    expect(found.map((app) => app?.name)).to.deep.equal([
      'Books',
      'Films',
      'Games',
      ...Array.from({ length: MAX_CALLERS - 2 }, () => undefined),
    ])
  })
})
