import { z } from 'zod'
import { appNow } from '#apps/app-time.ts'
import { payer } from '#commands/caller.ts'
import { command, type CommandTx } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import type { Context } from '#context.ts'
import { keptOf } from '#payments/balance.ts'
import { discounted } from '#promotions/discount.ts'
import { findUsable } from '#promotions/find-usable.ts'
import type { Promotion } from '#promotions/store.ts'
import { takeUse } from '#promotions/take-use.ts'
import { availableMethods } from '#providers/available-methods.ts'
import { closeOpenSessions } from '#providers/engine/reconcile-payments.ts'
import { text } from '#shared/validate.ts'
import { lockExistingEndUser } from '#subscriptions/store.ts'
import { getTransaction, updateLockedTransaction, type Transaction } from '#transactions/store.ts'
import { requireOpen } from './choose-method.ts'
import { completeUnpaid } from './promote.ts'
import type { CheckoutView } from './view-checkout.ts'

/** The body of `POST /checkout/{token}/promotion`. */
const ApplyPromotionInput = z.strictObject({ promotion_code: text(191) })

/**
 * Applies a code that the payer typed to an open checkout (R359). If nothing is left to pay, the checkout completes. Returns false if the
 * code cannot be used there. Throws `checkout_expired`, `invalid_request`.
 */
export async function applyPromotion(ctx: Context, view: CheckoutView, body: unknown): Promise<boolean> {
  requireOpen(view)
  return perform(ctx, payer, applyCode, body, view)
}

const applyCode = command({
  name: 'checkout.apply-promotion',
  input: ApplyPromotionInput,
  async run(tx, { promotion_code: code }, view: CheckoutView): Promise<boolean> {
    const { appId, externalRef, id } = view.transaction
    await lockExistingEndUser(tx, appId, externalRef)
    const transaction = await getTransaction(tx, id)
    if (transaction.promotionCode !== null) return transaction.promotionCode === code.toUpperCase()
    const promotion = view.takesPromotion ? await findForPage(tx, view, transaction, code) : null
    return promotion !== null && reprice(tx, view, transaction, promotion)
  },
})

async function findForPage(
  tx: CommandTx,
  { app, plan }: CheckoutView,
  { endUserId, currency, status, ...balance }: Transaction,
  code: string,
): Promise<Promotion | null> {
  if (!plan || status !== 'pending' || keptOf(balance) > 0) return null
  const now = appNow(app, tx.now)
  const found = await findUsable(tx, code, { app, endUserId, planCode: plan.code, currency, now })
  return found.kind === 'usable' && found.promotion.onPage ? found.promotion : null
}

/** Reduces the amount. A session that a provider opened for more still completes the payment; the excess is a surplus. */
async function reprice(
  tx: CommandTx,
  { app, session, methods }: CheckoutView,
  { id: transactionId, endUserId, amount, currency }: Transaction,
  promotion: Promotion,
): Promise<boolean> {
  const due = discounted(promotion, { amount, currency })
  const known = new Set<string>(methods)
  if (due.amount > 0 && (await availableMethods(tx, app, due.amount, currency, known)).length === 0) return false
  const createdAt = appNow(app, tx.now)
  const use = { transactionId, endUserId, status: 'reserved', reservedUntil: session.expiresAt, createdAt } as const
  if (!(await takeUse(tx, promotion, use))) return false
  await updateLockedTransaction(tx, transactionId, 'pending', { ...due, updatedAt: createdAt })
  if (due.amount === 0) {
    await completeUnpaid(tx, transactionId)
    tx.afterCommit(() => void closeOpenSessions(tx.ctx, transactionId))
  }
  return true
}
