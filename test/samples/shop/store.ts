// store.ts: a file in place of your database
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import type { Subscription } from 'paygate-client'

interface State {
  /** What Paygate said last about each user's subscription. */
  subscriptions: Record<string, Subscription>
  /** One-time purchases, by your own order number. */
  orders: Record<string, { status: 'open' | 'paid' | 'refunded'; transaction: number | null }>
  /** The ids of the events that were handled: a column with a unique key. */
  handled: string[]
  /** Up to where the events were followed. */
  cursor: string | null
}

const FILE = 'state.json'
const empty: State = { subscriptions: {}, orders: {}, handled: [], cursor: null }

export const state = existsSync(FILE) ? (JSON.parse(readFileSync(FILE, 'utf8')) as State) : empty

export function save(): void {
  writeFileSync(`${FILE}.new`, JSON.stringify(state))
  renameSync(`${FILE}.new`, FILE)
}
