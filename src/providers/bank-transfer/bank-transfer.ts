import type { Context } from '#context.ts'
import { inTransaction } from '#commands/transaction.ts'
import type { Provider } from '#providers/provider.ts'
import type { Transaction } from '#transactions/store.ts'
import { receivingAccount } from './receiving-account.ts'
import { giveTransferCode } from './store.ts'
import { newTransferCode } from './transfer-code.ts'

/** Transfers by hand to the app's own account, told of by the bank's mails (contract 4, Manual bank transfer; contract 5). */
export const bankTransfer: Provider = {
  method: 'bank_transfer',
  accepts: (amount, currency) => currency === 'VND' && amount < 1e13,
  async isReady(ctx, app, enabled) {
    return enabled.has('payos') && (await receivingAccount(ctx.db, app)) !== null
  },
  async open(ctx, { transaction, bankPageUrl }) {
    await ensureTransferCode(ctx, transaction)
    return { redirectUrl: bankPageUrl }
  },
}

/** A transaction keeps its first code: somebody may be typing it. */
async function ensureTransferCode(ctx: Context, transaction: Transaction): Promise<void> {
  if (transaction.transferCode !== null) return
  await inTransaction(ctx, async (tx) => {
    while (!(await giveTransferCode(tx, transaction.id, newTransferCode())));
  })
}
