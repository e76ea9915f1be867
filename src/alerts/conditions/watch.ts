import type { AlertKind, Condition } from '#alerts/kinds.ts'
import type { Alert, MethodAttempts } from '#alerts/store.ts'
import type { Context } from '#context.ts'
import type { RealTime } from '#shared/time.ts'

/** What a look around knows, besides the database. */
export interface Look {
  /** By the database's clock. */
  readonly now: RealTime
  /** The alerts that are open: where a condition comes and goes, an open one ends later than a new one begins. */
  readonly open: readonly Alert[]
  readonly memory: Memory
}

/** What a daemon remembers from one look to the next. */
export interface Memory {
  /** Since when it has looked without a break: nothing is silent before somebody listened. */
  watchingSince: RealTime
  lastLookAt: RealTime
  /** How often payments by each method are completed, as of an hour ago at most. */
  usual: { readonly at: RealTime; readonly attempts: readonly MethodAttempts[] } | null
}

export type ReadConditions = (ctx: Context, look: Look) => Promise<Condition[]>

/** Whether an alert of this kind about this subject is open. */
export function isOpen({ open }: Look, kind: AlertKind, subject: string): boolean {
  return open.some((alert) => alert.kind === kind && alert.subject === subject)
}
