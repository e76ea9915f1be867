import type { RealTime } from '#shared/time.ts'

export const ALERT_KINDS = [
  'money_waiting',
  'webhooks_failed',
  'mail_unreadable',
  'bank_silent',
  'account_paused',
  'job_silent',
  'ledger_fault',
  'disk_low',
  'backup_old',
  'clock_skew',
  'method_failing',
] as const
export type AlertKind = (typeof ALERT_KINDS)[number]

/** Something that is wrong now. An alert opens when a condition begins, and closes when it is over. */
export interface AlertCondition {
  readonly kind: AlertKind
  /** Which one of its kind: `transaction 17`, `app 1`. At most 191 characters. */
  readonly subject: string
  /** For operators: what is wrong, and what to do. */
  readonly text: string
  /** When it began. */
  readonly since: RealTime
}
