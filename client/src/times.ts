import type { Subscription } from './types.ts'

/** `2026-12-22 19:03:53` of the API, `2026-12-22T19:03:53+00:00` of a webhook, and what `toISOString` writes. */
const TIME = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d{1,9})?)(Z|[+-]\d\d:\d\d)?$/

/**
 * The moment that a time of the API names. It is in UTC unless it names a zone; `new Date(text)` would take it for the server's own. Throws
 * `TypeError` for any other text.
 */
export function parseTime(text: string): Date {
  const [, day = '', time = '', zone = 'Z'] = TIME.exec(text) ?? []
  const moment = new Date(`${day}T${time}${zone}`)
  if (Number.isNaN(moment.getTime())) throw new TypeError(`a time is written 2026-12-22 19:03:53: it is "${text}"`)
  return moment
}

/** A moment as the API writes it, in UTC and without fractions of a second. */
export function formatTime(time: Date): string {
  return time.toISOString().slice(0, 19).replace('T', ' ')
}

/**
 * Whether a subscription gives access at a moment: it is active, and its period has not ended. Takes what the API returned, the `data` of a
 * webhook, or what you stored of either; null and undefined are somebody who never subscribed. Pass a sandbox app's own time for its subscriptions.
 */
export function hasAccess(
  subscription: Pick<Subscription, 'status' | 'current_period_end'> | null | undefined,
  now: Date = new Date(),
): boolean {
  if (subscription?.status !== 'active') return false
  const { current_period_end: end } = subscription
  return end === null || now < parseTime(end)
}
