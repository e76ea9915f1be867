import type { Rehearsal } from '#context.ts'

/** The events that a rehearsal would send, as a sentence for the operator; none if it would send nothing. */
export function rehearsedEvents({ events }: Rehearsal): string[] {
  return events.length === 0 ? [] : [`the app is sent ${events.map(({ event_type }) => event_type).join(', ')}`]
}
