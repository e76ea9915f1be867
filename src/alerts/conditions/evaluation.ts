import type { AlertKind, AlertCondition } from '#alerts/kinds.ts'
import type { Alert, MethodAttempts } from '#alerts/store.ts'
import type { Context } from '#context.ts'
import type { RealTime } from '#shared/time.ts'

/** What an evaluation knows, besides the database. */
export interface Evaluation {
  /** By the database's clock. */
  readonly now: RealTime
  /** The open alerts. A condition that comes and goes closes an open alert later than it would open a new one. */
  readonly open: readonly Alert[]
  readonly memory: Memory
}

/** What a daemon remembers from one evaluation to the next. */
export interface Memory {
  /** Since when it has evaluated without a break: nothing counts as silent before that. */
  watchingSince: RealTime
  lastEvaluatedAt: RealTime
  /** How often payments by each method are completed; at most an hour old. */
  usual: { readonly at: RealTime; readonly attempts: readonly MethodAttempts[] } | null
}

export type ReadConditions = (ctx: Context, evaluation: Evaluation) => Promise<AlertCondition[]>

/** Whether an alert of this kind about this subject is open. */
export function isOpen({ open }: Evaluation, kind: AlertKind, subject: string): boolean {
  return open.some((alert) => alert.kind === kind && alert.subject === subject)
}
