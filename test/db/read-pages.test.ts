import { expect } from 'chai'
import { describe, it } from 'mocha'
import { readPages } from '#db/read-pages.ts'

describe('a list that is read page by page', () => {
  for (const [rows, pages, reads] of [
    [0, [], 1],
    [2, [[1, 2]], 1],
    [3, [[1, 2, 3]], 2],
    [7, [[1, 2, 3], [4, 5, 6], [7]], 3],
  ] as const) {
    it(`has each of ${rows} rows once, in ${pages.length} pages of at most three, with ${reads} reads`, async () => {
      const all = Array.from({ length: rows }, (_, index) => index + 1)
      const asked: (number | null)[] = []
      const read = (after: number | null, limit: number): Promise<number[]> => {
        asked.push(after)
        return Promise.resolve(all.filter((row) => row > (after ?? 0)).slice(0, limit))
      }
      const found: (readonly number[])[] = []
      for await (const page of readPages(3, read)) found.push(page)
      expect(found).to.deep.equal(pages)
      expect(asked).to.have.length(reads)
    })
  }
})
