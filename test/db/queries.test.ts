import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import type { Queries } from '#db/queries.ts'
import { endUsers } from '#subscriptions/store.ts'
import { asRealTime } from '#shared/time.ts'
import { testDatabase } from '../support/database.ts'

const APP = 1

describe('an update by a table’s columns', () => {
  let db: Queries
  let ids: Record<'an' | 'binh' | 'chi', number>

  beforeEach(async () => {
    ;({ db } = testDatabase())
    const insert = (externalRef: string) =>
      db.insert(endUsers, { appId: APP, externalRef, version: 0, createdAt: asRealTime(new Date()) })
    ids = { an: await insert('an'), binh: await insert('binh'), chi: await insert('chi') }
  })

  const changed = async () =>
    (await db.all(endUsers, 'WHERE version = 1 ORDER BY id')).map(({ externalRef }) => externalRef)

  it('changes the rows with one of the values of a list, ids included', async () => {
    expect(await db.update(endUsers, { id: [ids.an, ids.chi], appId: APP }, { version: 1 })).to.equal(2)
    expect(await changed()).to.deep.equal(['an', 'chi'])
    expect(await db.update(endUsers, { externalRef: ['binh', 'nobody'] }, { version: 1 })).to.equal(1)
    expect(await changed()).to.deep.equal(['an', 'binh', 'chi'])
  })

  it('changes no row if a list is empty', async () => {
    expect(await db.update(endUsers, { id: [] }, { version: 1 })).to.equal(0)
    expect(await changed()).to.deep.equal([])
  })

  it('refuses to change every row, and to change nothing', async () => {
    const everything: unknown = await db.update(endUsers, {}, { version: 1 }).catch((error: unknown) => error)
    expect(String(everything)).to.include('names no row')
    const nothing: unknown = await db.update(endUsers, { id: ids.an }, {}).catch((error: unknown) => error)
    expect(String(nothing)).to.include('changes nothing')
  })
})

describe('a time after the year 9999', () => {
  it('is later than every stored one, in a prepared statement and in a text', async () => {
    const { db } = testDatabase()
    const last = asRealTime(new Date('9999-12-31T23:59:59Z'))
    const beyond = asRealTime(new Date('+010000-01-01T00:00:00Z'))
    await db.insert(endUsers, { appId: APP, externalRef: 'an', version: 0, createdAt: last })
    const counts = []
    for (const condition of ['created_at >= ?', 'created_at < ?']) {
      counts.push(await db.count(endUsers, `WHERE ${condition}`, [beyond]))
      counts.push(await db.count(endUsers, `WHERE ${condition} AND app_id IN (?)`, [beyond, [APP]]))
    }
    expect(counts).to.deep.equal([0, 0, 1, 1])
  })
})
