import type { Context } from '#context.ts'
import { withTimeout } from '#shared/budget.ts'
import { messageOf } from '#shared/errors.ts'
import { SECOND_MS } from '#shared/time.ts'

/** Scrapes within this time share one reading, so that an overactive scraper does not load the database. */
export const FRESH_MS = 5 * SECOND_MS
const DEADLINE_MS = 2 * SECOND_MS

/** Throws if the database takes longer than a scrape or a check of readiness waits. */
export function inTime<T>(reading: Promise<T>): Promise<T> {
  return withTimeout(reading, DEADLINE_MS, new Error(`no answer in ${DEADLINE_MS} ms`))
}

export function warnUnread(ctx: Context, metric: string, error: unknown): void {
  ctx.log.warn({ metric, error: messageOf(error) }, 'a database metric cannot be read')
}

/** The label `mode`. */
export function modeOf({ isSandbox }: { readonly isSandbox: boolean }): string {
  return isSandbox ? 'test' : 'live'
}
