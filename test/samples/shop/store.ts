// store.ts: a file in place of your database
import { existsSync, readFileSync, writeFileSync } from 'node:fs'

interface State {
  /** When each user's access ends; null is never. */
  paidUntil: Record<string, string | null>
  /** The ids of the events that were handled: a column with a unique key. */
  handled: string[]
  /** The time of the newest event that the last backfill read. */
  readUpTo: string | null
}

const FILE = 'state.json'
const empty: State = { paidUntil: {}, handled: [], readUpTo: null }

export const state = existsSync(FILE) ? (JSON.parse(readFileSync(FILE, 'utf8')) as State) : empty

export function save(): void {
  writeFileSync(FILE, JSON.stringify(state))
}
