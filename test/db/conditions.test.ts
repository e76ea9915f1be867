import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { idAmong } from '#db/conditions.ts'
import { id } from '#db/columns.ts'
import { shape } from '#db/table.ts'
import { testDatabase } from '../support/database.ts'

describe('a condition on ids', () => {
  const LAST = 60

  async function matching(ids: readonly number[]): Promise<number[]> {
    const among = idAmong(ids)
    const rows = await testDatabase().db.all(
      shape({ id: id() }),
      `WITH RECURSIVE numbers (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM numbers WHERE id < ${LAST})
       SELECT id FROM numbers WHERE ${among.sql} ORDER BY id`,
      among.params,
    )
    return rows.map((row) => row.id)
  }

  it('is met by these ids and no others, in whatever order they are given', async () => {
    const someIds = fc.uniqueArray(fc.integer({ min: 1, max: LAST }), { maxLength: LAST })
    await fc.assert(
      fc.asyncProperty(someIds, async (ids) => {
        expect(await matching(ids)).to.deep.equal(ids.toSorted((a, b) => a - b))
      }),
      { numRuns: 200 },
    )
  })

  it('has one text for every run of ids that follow each other, so that it is prepared once', () => {
    expect(idAmong([7, 5, 6])).to.deep.equal({ sql: 'id BETWEEN ? AND ?', params: [5, 7] })
    expect(idAmong([9])).to.deep.equal({ sql: 'id BETWEEN ? AND ?', params: [9, 9] })
  })

  it('has a list among its values where there are several runs: such a text is never prepared', () => {
    expect(idAmong([1, 2, 3, 4, 11, 12, 13, 14, 20])).to.deep.equal({
      sql: '(id IN (?) OR id BETWEEN ? AND ? OR id BETWEEN ? AND ?)',
      params: [[20], 1, 4, 11, 14],
    })
    expect(idAmong([1, 2, 3, 4, 11, 12, 13, 14]).params[0]).to.deep.equal([0])
  })
})
