// from-stripe.ts: Stripe's subscriptions on standard input, a file to import on standard output
import { text } from 'node:stream/consumers'
import { formatTime } from 'paygate-client'

interface StripeSubscription {
  readonly status: string
  readonly billing_cycle_anchor: number
  /** Up to API version 2025-02-24; since then it is in the items. */
  readonly current_period_end?: number
  readonly items: { readonly data: readonly { readonly current_period_end?: number }[] }
  readonly customer: { readonly email: string; readonly name: string | null }
  readonly metadata: Readonly<Record<string, string>>
}

const priceId = process.argv[2] ?? ''
const quoted = (cell: string): string => `"${cell.replaceAll('"', '""')}"`
const { data } = JSON.parse(await text(process.stdin)) as { data: StripeSubscription[] }

console.log('external_ref,price_id,current_period_end,anchor_day,customer_email,customer_name')
for (const { status, billing_cycle_anchor, current_period_end, items, customer, metadata } of data) {
  if (status !== 'active') continue
  const end = new Date((current_period_end ?? items.data[0]?.current_period_end ?? 0) * 1000)
  const anchor = new Date(billing_cycle_anchor * 1000)
  const { email, name } = customer
  const row = [metadata['user_id'] ?? '', priceId, formatTime(end), String(anchor.getUTCDate()), email, name ?? '']
  console.log(row.map(quoted).join(','))
}
