// events.ts
import { parseTime, paygate } from './paygate.ts'
import { save, state } from './store.ts'

interface ShopEvent {
  readonly id: string
  readonly event_type: string
  readonly data: { readonly external_ref?: unknown }
}

/** Handles an event once, however often and in whatever order events come. */
export async function handle({ id, event_type, data }: ShopEvent): Promise<void> {
  if (state.handled.includes(id)) {
    console.log(`${id} again`)
    return
  }
  const user = data.external_ref
  if (event_type.startsWith('subscription.') && typeof user === 'string') {
    // An event is a snapshot, and a later one may have come before it: ask how things are now.
    const { current_period_end } = await paygate.subscriptions.get(user)
    state.paidUntil[user] = current_period_end
  }
  state.handled.push(id)
  save()
  console.log(`${id} ${event_type}`)
}

/** An event may be committed after later ones: so much is read again. */
const OVERLAP_MS = 5 * 60 * 1000

/** Reads what happened since the last backfill, and a little before it, and handles what never arrived, oldest first. */
export async function catchUp(): Promise<void> {
  const from = state.readUpTo === null ? 0 : parseTime(state.readUpTo).getTime() - OVERLAP_MS
  const events = []
  for await (const event of paygate.events.list({ limit: 100 })) {
    if (parseTime(event.created_at).getTime() < from) break
    events.unshift(event)
  }
  for (const event of events) if (!state.handled.includes(event.id)) await handle(event)
  state.readUpTo = events.at(-1)?.created_at ?? state.readUpTo
  save()
}
