import { Option, type Command } from 'commander'
import type { Page } from '#http/page-of.ts'
import type { Output } from './output.ts'
import { UsageError } from './usage-error.ts'

const PAGE = 100

/** The start and the length of a list, as typed. */
export interface PageOptions {
  readonly limit?: string
  readonly cursor?: string
}

/** What a page of a list is asked for. */
export interface PageQuery {
  readonly limit: string
  readonly cursor?: string
}

/** The options of a list that comes in pages. */
export function pageOptions(most = '100'): Option[] {
  return [
    new Option('--limit <n>', 'how many at most').default(most),
    new Option('--cursor <cursor>', 'continue an earlier list, which printed it'),
  ]
}

/** Declares `--limit` and `--cursor` on a list that comes in pages. */
export function withPages(list: Command, most?: string): Command {
  for (const option of pageOptions(most)) list.addOption(option)
  return list
}

/** The number of `--limit`. */
export function readLimit(text = ''): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new UsageError('--limit must be a number from 1 to 999999')
  return Number(text)
}

/** At most `limit` rows from `--cursor` on. Where there are more, says so on standard error, to scripts too. */
export async function gatherRows<T>(
  out: Output,
  limit: number,
  from: PageOptions,
  fetchPage: (query: PageQuery) => Promise<Page<T>>,
): Promise<T[]> {
  const { formatCursor } = await import('#http/page-of.ts')
  const rows: T[] = []
  let cursor: string | null = from.cursor ?? null
  do {
    const size = String(Math.min(PAGE, limit - rows.length))
    const page: Page<T> = await fetchPage(cursor === null ? { limit: size } : { limit: size, cursor })
    rows.push(...page.rows)
    cursor = formatCursor(page.next)
  } while (cursor !== null && rows.length < limit)
  if (cursor !== null) out.note(`Showing ${rows.length}; see more with --cursor ${cursor}, or with a higher --limit.`)
  return rows
}
