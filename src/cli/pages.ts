import type { Page } from '#http/page-of.ts'
import type { Output } from './output.ts'
import { UsageError } from './usage-error.ts'

const PAGE = 100

/** The number of `--limit`. */
export function readLimit(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new UsageError('--limit must be a number from 1 to 999999')
  return Number(text)
}

/** At most `limit` rows of a list that comes in pages; says so where there are more. */
export async function gatherRows<T>(
  out: Output,
  limit: number,
  fetchPage: (query: { readonly limit: string; readonly cursor?: string }) => Promise<Page<T>>,
): Promise<T[]> {
  const { formatCursor } = await import('#http/page-of.ts')
  const rows: T[] = []
  let cursor: string | null = null
  do {
    const size = String(Math.min(PAGE, limit - rows.length))
    const page: Page<T> = await fetchPage(cursor === null ? { limit: size } : { limit: size, cursor })
    rows.push(...page.rows)
    cursor = formatCursor(page.next)
  } while (cursor !== null && rows.length < limit)
  if (cursor !== null) out.hint(`There are more than these ${rows.length}: raise --limit to see them.`)
  return rows
}
