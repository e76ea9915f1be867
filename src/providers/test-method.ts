import { confirmPayment } from '#transactions/confirm-payment.ts'
import type { Provider } from './provider.ts'

/** Pays at once without money: on sandbox apps only (contract 4, Sandbox and live). */
export const testMethod: Provider = {
  method: 'test',
  accepts: () => true,
  isReady: (_ctx, app) => Promise.resolve(app.isSandbox),
  async open(ctx, { transaction, returnUrl }) {
    await confirmPayment(ctx, {
      provider: 'test',
      eventId: null,
      reference: `test_${transaction.id}`,
      transactionId: transaction.id,
      amount: transaction.amount,
      currency: transaction.currency,
      paidAt: ctx.clock.now(),
    })
    return { redirectUrl: returnUrl }
  },
}
