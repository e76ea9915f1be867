import { z } from 'zod'
import type { Position } from '#db/conditions.ts'
import { InvalidInput } from '#shared/errors.ts'
import { parseNumericId } from '#shared/ids.ts'
import { validate } from '#shared/validate.ts'

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

/** One page, and where the next one starts. */
export interface Page<T> {
  readonly rows: T[]
  readonly next: Position | null
}

/** Cuts the page from `limit + 1` rows; the additional row shows that there is more. */
export function pageOf<T extends { readonly createdAt: Date; readonly id: number }>(
  rows: readonly T[],
  limit: number,
): Page<T> {
  return pageBy(rows, limit, ({ createdAt }) => createdAt)
}

/** As `pageOf`, of rows that are ordered by another time. */
export function pageBy<T extends Pick<Position, 'id'>>(
  rows: readonly T[],
  limit: number,
  timeOf: (row: T) => Date,
): Page<T> {
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return { rows: page, next: rows.length > limit && last ? { at: timeOf(last), id: last.id } : null }
}

/** What a page requests from its list: rows below a position, and one row more than the page has. */
export interface PageRequest {
  readonly below: Position | null
  readonly limit: number
}

/** The page that `query` asks for, of a list that has no query fields of its own. */
export async function listPage<T extends Pick<Position, 'id'>>(
  query: unknown,
  list: (request: PageRequest) => Promise<readonly T[]>,
  timeOf: (row: T) => Date,
): Promise<Page<T>> {
  const { limit, cursor } = validate(ListQuery, query)
  return pageBy(await list({ below: parseCursor(cursor), limit: limit + 1 }), limit, timeOf)
}

/** The page with each row as callers see it. */
export function presentPage<T, View>({ rows, next }: Page<T>, present: (row: T) => View): Page<View> {
  return { rows: rows.map(present), next }
}

export function formatCursor(position: Position | null): string | null {
  return position && Buffer.from(`${position.at.getTime()}.${position.id}`).toString('base64url')
}

/** Throws `invalid_request` for anything that `formatCursor` did not write. */
export function parseCursor(cursor: string | undefined): Position | null {
  if (cursor === undefined) return null
  const [ms = '', idText = '', ...rest] = Buffer.from(cursor, 'base64url').toString('latin1').split('.')
  const id = parseNumericId(idText)
  // Fifteen digits of milliseconds hold the end of the year 9999, the latest of a row.
  const at = new Date(/^\d{1,15}$/.test(ms) ? Number(ms) : NaN)
  const position = id === null || rest.length > 0 || Number.isNaN(at.getTime()) ? null : { at, id }
  if (!position || formatCursor(position) !== cursor)
    throw new InvalidInput('cursor', 'is not a cursor that a list returned')
  return position
}
