// from-stripe.ts: Stripe's subscriptions on standard input, a file to import on standard output
import { text } from 'node:stream/consumers'
import { formatTime } from 'paygate-client'

interface StripeSubscription {
  readonly status: string
  readonly billing_cycle_anchor: number
  /** Up to API version 2025-02-24; since then it is in the items. */
  readonly current_period_end?: number
  readonly items: { readonly data: readonly { readonly current_period_end?: number }[] }
  readonly customer: { readonly email: string | null; readonly name: string | null }
  readonly metadata: Readonly<Record<string, string>>
}

const DAY_MS = 86_400_000
const priceId = process.argv[2] ?? ''
const quoted = (cell: string): string => `"${cell.replaceAll('"', '""')}"`
const { data } = JSON.parse(await text(process.stdin)) as { data: StripeSubscription[] }

console.log('external_ref,price_id,current_period_end,anchor_day,customer_email,customer_name')
for (const { status, billing_cycle_anchor, current_period_end, items, customer, metadata } of data) {
  if (status !== 'active') continue
  const end = new Date((current_period_end ?? items.data[0]?.current_period_end ?? 0) * 1000)
  const day = new Date(billing_cycle_anchor * 1000).getUTCDate()
  // The end says at which day months aim, unless its month is too short for that day.
  const isShort = day > end.getUTCDate() && new Date(end.getTime() + DAY_MS).getUTCDate() === 1
  const { email, name } = customer
  const row = [metadata['user_id'] ?? '', priceId, formatTime(end), isShort ? String(day) : '', email ?? '', name ?? '']
  console.log(row.map(quoted).join(','))
}
