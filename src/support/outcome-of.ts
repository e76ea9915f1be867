import type { Context } from '#context.ts'
import { keptOf } from '#payments/balance.ts'
import { found } from '#shared/errors.ts'
import { englishMoney } from '#shared/money.ts'
import { formatDay } from '#shared/time.ts'
import { findPlan } from '#plans/store.ts'
import { findSubscriptionOfEndUser } from '#subscriptions/store.ts'
import { findTransaction } from '#transactions/store.ts'

/** What the money of a transaction has done for the person: `user-lan has Premium until 2026-12-22`. */
export async function outcomeOf(ctx: Context, transactionId: number): Promise<string> {
  const transaction = found(await findTransaction(ctx.db, transactionId), 'transaction')
  const { externalRef, amount, currency, status, flagReason } = transaction
  const name = `transaction ${transactionId} of ${externalRef}`
  if (status === 'pending')
    return `${name} has ${englishMoney(keptOf(transaction), currency)} of ${englishMoney(amount, currency)}`
  if (flagReason !== null) return `${name} is ${status}, and flagged ${flagReason}`
  const subscription =
    transaction.mode === 'subscription' ? await findSubscriptionOfEndUser(ctx.db, transaction.endUserId) : null
  const plan = subscription && (await findPlan(ctx.db, transaction.appId, subscription.planId))
  if (!subscription || !plan) return `${name} is ${status}`
  const { currentPeriodEnd: end } = subscription
  return end
    ? `${externalRef} has ${plan.name} until ${formatDay(end)}`
    : `${externalRef} has ${plan.name} without an end`
}
