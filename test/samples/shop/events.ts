// events.ts
import type { WebhookEvent } from 'paygate-client'
import { paygate } from './paygate.ts'
import { save, state } from './store.ts'

let last: Promise<unknown> = Promise.resolve()

/** Handles an event once, however often and in whatever order events come: one after the other. */
export function handle(event: WebhookEvent): Promise<void> {
  const handled = last.then(() => handleOnce(event))
  last = handled.catch(() => undefined)
  return handled
}

async function handleOnce(event: WebhookEvent): Promise<void> {
  if (state.handled.includes(event.id)) {
    console.log(`${event.id} again`)
    return
  }
  await apply(event)
  state.handled.push(event.id)
  save()
  console.log(`${event.id} ${event.event_type}`)
}

async function apply({ event_type, data }: WebhookEvent): Promise<void> {
  if (event_type.startsWith('subscription.') && 'external_ref' in data) {
    // An event is a snapshot, and a later one may have come before it: ask how things are now.
    state.subscriptions[data.external_ref] = await paygate.subscriptions.get(data.external_ref)
  }
  if (event_type === 'transaction.completed') {
    const order = state.orders[data.metadata['order'] ?? '']
    if (order?.status === 'open') order.status = 'paid'
  }
  if (event_type === 'transaction.refunded' && data.status === 'refunded') {
    const order = Object.values(state.orders).find(({ transaction }) => transaction === data.transaction_id)
    if (order) order.status = 'refunded'
  }
}

/** Reads every event in order, so that none is lost; webhooks have brought most of them already. */
export async function followEvents(): Promise<void> {
  const from = state.cursor ?? new Date(0)
  for await (const { event, cursor } of paygate.events.follow({ from, pollSeconds: 5 })) {
    if (!state.handled.includes(event.id)) await handle(event)
    state.cursor = cursor
    save()
  }
}
