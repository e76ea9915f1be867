import type { Suggestion } from '#bank-mail/suggest-transactions.ts'
import { mailIn, type ReviewItem } from '#review/read-review.ts'

/** What may be decided about a case, by one key. */
export interface Action {
  readonly key: string
  readonly name: string
  /** What follows `billing-cli`, without the note; null if it needs a suggestion and none is chosen. */
  readonly words: (item: ReviewItem, chosen: Suggestion | null) => readonly string[] | null
  /** Whether the command has `--note`; otherwise the console adds the note to the audit log. */
  readonly takesNote: boolean
  /** Whether the command has `--dry-run`. */
  readonly rehearses: boolean
  /** Whether a refund that an operator transfers manually needs its reference. */
  readonly takesReference?: true
}

type Words = Action['words']

const deciding = { takesNote: true, rehearses: true } as const
const doing = { takesNote: false, rehearses: true } as const

const resolve =
  (action: string): Words =>
  ({ id }) => ['transaction', 'resolve', String(id), '--action', action]
const withChosen =
  (...before: string[]): Words =>
  ({ id }, chosen) =>
    chosen && [...before, String(id), String(chosen.transaction_id)]
const plain =
  (...before: string[]): Words =>
  ({ id }) => [...before, String(id)]
const settle =
  (outcome: string): Words =>
  (item) => [`${mailIn(item)}s`, 'settle', String(item.id), outcome]

/** By kind, in the order of the footer. */
export const ACTIONS: Readonly<Record<ReviewItem['kind'], readonly Action[]>> = {
  flagged_payment: [
    { key: 'c', name: 'complete', words: resolve('complete'), ...deciding },
    { key: 'd', name: 'dismiss', words: resolve('dismiss'), ...deciding },
    { key: 'r', name: 'refund', words: resolve('refund'), ...deciding, takesReference: true },
  ],
  unapplied_payment: [
    { key: 'm', name: 'move to the chosen payment', words: withChosen('payment', 'move'), ...deciding },
    { key: 'd', name: 'dismiss', words: plain('payment', 'close'), ...deciding },
    { key: 'r', name: 'refund', words: plain('payment', 'refund'), ...deciding, takesReference: true },
  ],
  unmatched_bank_mail: [
    { key: 'm', name: 'match the chosen payment', words: withChosen('bank-mail', 'match'), ...deciding },
    { key: 'd', name: 'dismiss', words: plain('bank-mail', 'close'), ...deciding },
  ],
  unreadable_bank_mail: [{ key: 'd', name: 'dismiss', words: plain('bank-mail', 'close'), ...deciding }],
  unconfirmed_mail: [
    { key: 's', name: 'sent', words: settle('--sent'), ...doing },
    { key: 'n', name: 'not sent', words: settle('--not-sent'), ...doing },
  ],
  failed_webhook: [{ key: 't', name: 'try again', words: plain('webhook', 'retry'), ...doing }],
  paused_account: [
    {
      key: 't',
      name: 'try now',
      words: ({ app_id }) => ['reconcile', '--app', String(app_id)],
      takesNote: false,
      rehearses: false,
    },
  ],
  refused_address: [{ key: 't', name: 'try all again', words: () => ['reminders', 'refused', '--retry'], ...doing }],
}
