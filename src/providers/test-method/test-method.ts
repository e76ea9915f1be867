import { defineProvider } from '#providers/provider.ts'
import { dueOf } from '#payments/balance.ts'
import { provider } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { confirmPaymentCommand } from '#transactions/confirm-payment.ts'

/** Pays at once without money: on sandbox apps only (R218). */
export const testMethod = defineProvider({
  method: 'test',
  code: 'test',
  texts: {
    en: { name: 'Test payment', hint: 'Completes instantly. No real money moves.', pay: 'Pay with test money' },
    vi: { name: 'Thanh toán thử', hint: 'Hoàn tất ngay. Không chuyển tiền thật.', pay: 'Thanh toán thử' },
  },
  isSandboxOnly: true,
  paysAtOnce: true,
  accepts: () => true,
  isReady: (_db, app) => Promise.resolve(app.isSandbox),
  async open(ctx, { transaction, returnUrl }) {
    await perform(ctx, provider('test'), confirmPaymentCommand, undefined, {
      provider: 'test',
      events: [],
      reference: `test_${transaction.id}`,
      transactionId: transaction.id,
      amount: dueOf(transaction),
      currency: transaction.currency,
      paidAt: ctx.clock.now(),
    })
    return { redirectUrl: returnUrl }
  },
})
