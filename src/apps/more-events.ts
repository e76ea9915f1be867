import { z } from 'zod'

/** The events that an app gets only if it asks for them. */
export const MORE_EVENTS = ['transaction.refunded', 'transaction.flagged', 'subscription.expired'] as const
export type MoreEvent = (typeof MORE_EVENTS)[number]

export const moreEvents = z
  .array(z.enum(MORE_EVENTS, `must be all, none or of ${MORE_EVENTS.join(', ')}`))
  .transform((asked) => MORE_EVENTS.filter((type) => asked.includes(type)))
