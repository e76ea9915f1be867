import { z } from 'zod'
import type { PageRequest, Position } from '#db/conditions.ts'
import { invalidField } from '#shared/errors.ts'
import { parseNumericId } from '#shared/ids.ts'

/** Query fields of every list that can grow (R27). */
export const listQueryFields = {
  limit: z
    .string()
    .regex(/^([1-9]\d?|100)$/, 'must be from 1 to 100')
    .transform(Number)
    .default(20)
    .meta({ type: 'integer', minimum: 1, maximum: 100, description: 'How many to return.' }),
  cursor: z.string().optional().describe('The `next_cursor` of the previous page.'),
}

/** The query of a list that has no fields of its own. */
export const ListQuery = z.object(listQueryFields)

/** One page, and the cursor of the next; null on the last. */
export interface Page<T> {
  readonly rows: T[]
  readonly nextCursor: string | null
}

/**
 * The page that a checked query asks for. `name` is the list's own, since a cursor is valid for one list. `read` returns the rows after a
 * position, in the order of `timeOf` and then of their ids, or of their ids alone. Throws `invalid_request` for a cursor that this list did
 * not return.
 */
export async function listPage<T extends { readonly id: number }>(
  name: string,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
  read: (page: PageRequest) => Promise<readonly T[]>,
  timeOf: (row: T) => Date,
): Promise<Page<T>> {
  const after = cursor === undefined ? null : parseCursor(name, cursor)
  // The additional row shows that there is another page.
  const found = await read({ after, limit: limit + 1 })
  const rows = found.slice(0, limit)
  const last = rows.at(-1)
  const hasMore = found.length > limit && last !== undefined
  return { rows, nextCursor: hasMore ? formatCursor(name, { at: timeOf(last), id: last.id }) : null }
}

/** The page with each row as callers see it. */
export function presentPage<T, View>({ rows, nextCursor }: Page<T>, present: (row: T) => View): Page<View> {
  return { rows: rows.map(present), nextCursor }
}

function formatCursor(name: string, { at, id }: Position): string {
  return Buffer.from(`${name}.${at.getTime()}.${id}`).toString('base64url')
}

/** Throws `invalid_request` for anything that `formatCursor` did not write for this list. */
function parseCursor(name: string, cursor: string): Position {
  const [, ms = '', idText = ''] = Buffer.from(cursor, 'base64url').toString('latin1').split('.')
  const id = parseNumericId(idText)
  // Fifteen digits of milliseconds hold the end of the year 9999, the latest of a row.
  const at = new Date(/^\d{1,15}$/.test(ms) ? Number(ms) : NaN)
  const position = id === null || Number.isNaN(at.getTime()) ? null : { at, id }
  if (!position || formatCursor(name, position) !== cursor)
    throw invalidField('cursor', 'is not a cursor that this list returned')
  return position
}
