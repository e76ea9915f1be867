import type { Context } from '#context.ts'
import { countMisaddressedMails, countWaitingMails, type Review } from '#bank-mail/store.ts'
import { sumUnallocated } from '#payments/lists/store.ts'
import { counted } from '#shared/counted.ts'
import { englishMoney } from '#shared/money.ts'
import { DAY_MS, addMs } from '#shared/time.ts'
import { verifyLedger } from '#ledger/verify-ledger.ts'
import { failed, passed, warning, type CheckResult } from '#shared/check-result.ts'
import { listRefusedEvents } from './store.ts'
import { sumFlagged, sumSurplus, type FlaggedSum } from '#reports/store.ts'

const REFUSED_DAYS = 7
const MAX_LISTED = 1000
const MAX_NAMED = 3

/** Payments that an operator must decide about. Those of sandbox apps are only a warning. */
export async function checkFlagged(ctx: Context): Promise<CheckResult[]> {
  const sums = await sumFlagged(ctx.db)
  if (sums.length === 0) return [passed('flagged', 'no transaction needs review')]
  const live = sums.filter(({ isSandbox }) => !isSandbox)
  const fix = 'billing-cli transaction list --flagged, then transaction show <id> and transaction resolve <id>'
  if (live.length === 0) return [warning('flagged', `on sandbox apps: ${wordsOf(sums)}`, fix)]
  return [failed('flagged', wordsOf(live), fix)]
}

function wordsOf(sums: readonly FlaggedSum[]): string {
  return sums
    .map(
      ({ reason, currency, transactions, unapplied }) =>
        `${transactions} ${reason} with ${englishMoney(unapplied, currency)} received and not applied`,
    )
    .join('; ')
}

/** Unallocated money, which waits for a decision, and surplus money, which may be refunded. */
export async function checkPayments(ctx: Context): Promise<CheckResult[]> {
  const unallocated = await sumUnallocated(ctx.db, null)
  const surplus = await sumSurplus(ctx.db)
  const results = unallocated.map(({ isSandbox, currency, payments, unknown, amount }) => {
    const unsaid = unknown === 0 ? '' : `, ${unknown} of unknown amount`
    const detail = `${counted(payments, 'payment')} with ${englishMoney(amount, currency)} not allocated to a transaction${unsaid}`
    const fix = 'billing-cli payment list --unallocated, then payment move, refund or close <id>'
    return warning('payments', isSandbox ? `on sandbox apps: ${detail}` : detail, fix)
  })
  const beyond = surplus
    .filter(({ isSandbox }) => !isSandbox)
    .map(
      ({ currency, transactions, surplus: amount }) =>
        `${englishMoney(amount, currency)} beyond the amount of ${counted(transactions, 'transaction')}`,
    )
  const sums = beyond.length === 0 ? 'no surplus' : `surplus, to be refunded or kept: ${beyond.join('; ')}`
  return [...results, passed('payments', results.length === 0 ? `all money is allocated; ${sums}` : sums)]
}

const REVIEWS: Readonly<Record<Review, string>> = {
  credit: 'with unmatched money',
  not_understood: 'not understood',
  unknown_sender: 'of unknown senders at a bank',
  unreadable: 'unreadable',
}

/** Bank mails that wait for an operator. A warning, since anybody who knows an account's address can add to them. */
export async function checkBankMails(ctx: Context): Promise<CheckResult[]> {
  const waiting = await countWaitingMails(ctx.db)
  const misaddressed = await countMisaddressedMails(ctx.db, addMs(ctx.clock.now(), -REFUSED_DAYS * DAY_MS))
  const results: CheckResult[] = []
  if (waiting.length > 0) {
    const detail = waiting.map(({ review, mails }) => `${mails} ${REVIEWS[review]}`).join('; ')
    const fix = 'billing-cli bank-mail list --unmatched, then bank-mail match <id> <transaction_id> or close <id>'
    results.push(warning('mails', `bank mails to review: ${detail}`, fix))
  }
  if (misaddressed > 0) {
    const detail = `${misaddressed} bank mails with a payment's code were invalid_recipient in ${REFUSED_DAYS} days`
    const fix =
      'compare mailbox and forward address in billing-cli bank-account list with the address that the bank writes to'
    results.push(warning('mails', detail, fix))
  }
  return results.length > 0 ? results : [passed('mails', 'no bank mail needs review')]
}

/** Provider notifications that do not fit what was stored. */
export async function checkNotifications(ctx: Context): Promise<CheckResult[]> {
  const since = addMs(ctx.clock.now(), -REFUSED_DAYS * DAY_MS)
  const refused = await listRefusedEvents(ctx.db, since, MAX_LISTED)
  if (refused.length === 0) return [passed('notifications', `none was refused in ${REFUSED_DAYS} days`)]
  const named = refused.slice(0, MAX_NAMED).map(({ provider, eventId, transactionId, note }) => {
    const subject = transactionId === null ? '' : ` (transaction ${transactionId})`
    return `${provider} ${eventId}${subject}${note === null ? '' : `: ${note}`}`
  })
  const fix = 'compare with the provider’s dashboard: billing-cli transaction show <id>, billing-cli reconcile'
  const detail = `${refused.length} refused in ${REFUSED_DAYS} days, the newest: ${named.join('; ')}`
  return [warning('notifications', detail, fix)]
}

/** Whether the ledgers add up. */
export async function checkLedger(ctx: Context): Promise<CheckResult[]> {
  const { checked, faults } = await verifyLedger(ctx, null)
  if (faults.length === 0) return [passed('ledger', `${counted(checked, 'subscription')} recomputed, no errors`)]
  const named = faults.slice(0, MAX_NAMED).map(({ subject, fault: text }) => `${subject} ${text}`)
  return [
    failed(
      'ledger',
      `${counted(faults.length, 'error')}: ${named.join('; ')}`,
      'billing-cli ledger verify lists all; compare with your last backup before changing anything',
    ),
  ]
}
