import { appNow } from '#apps/app-time.ts'
import { payer } from '#commands/caller.ts'
import { command, nothing } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import type { Context } from '#context.ts'
import { bankPageProvider } from '#providers/providers.ts'
import { AppError } from '#shared/errors.ts'
import { insertChange, transactions } from '#transactions/store.ts'
import { requestOf } from './choose-method.ts'
import { viewCheckout, type CheckoutView } from './view-checkout.ts'

/**
 * Opens the payment for bank transfers, which it then takes whatever method is chosen later (R192), and returns the checkout.
 * An expired or completed checkout is returned unchanged. Throws `not_found`, and `payment_method_unavailable` if it cannot be paid by
 * transfer.
 */
export async function openBankPage(ctx: Context, token: string): Promise<CheckoutView> {
  const view = await viewCheckout(ctx, token)
  if (view.state !== 'open' || view.transaction.bankPageOpenedAt) return view
  const provider = bankPageProvider()
  if (!view.methods.includes(provider.method)) {
    throw new AppError('payment_method_unavailable', 'this payment cannot be made by bank transfer', {
      field: 'payment_method',
    })
  }
  await provider.open(ctx, requestOf(ctx, view))
  await perform(ctx, payer, takeTransfers, undefined, view)
  return viewCheckout(ctx, token)
}

const takeTransfers = command({
  name: 'checkout.open-bank-page',
  input: nothing,
  isRepeatable: true,
  async run(tx, _input, { app, transaction }: Pick<CheckoutView, 'app' | 'transaction'>) {
    const { id: transactionId, appId } = transaction
    const unopened = { id: transactionId, status: 'pending' as const, bankPageOpenedAt: null }
    if ((await tx.update(transactions, unopened, { bankPageOpenedAt: appNow(app, tx.now) })) === 1)
      await insertChange(tx, { appId, transactionId, kind: 'bank_page', flagReason: null, actor: null, note: null })
  },
})
