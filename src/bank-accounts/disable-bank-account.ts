import type { Context } from '#context.ts'
import { recordAudit } from '#commands/audit.ts'
import { inTransaction } from '#commands/transaction.ts'
import { requireBankAccount } from './require-bank-account.ts'
import { disableBankAccountRow, type BankAccount } from './store.ts'

/** No more money is taken on the account: its mails are ignored, and apps that have it offer no bank transfer. Throws `not_found`. */
export async function disableBankAccount(ctx: Context, actor: string, accountId: number): Promise<BankAccount> {
  return inTransaction(ctx, async (tx) => {
    const account = await requireBankAccount(tx, accountId)
    if (account.disabledAt) return account
    await disableBankAccountRow(tx, accountId)
    await recordAudit(tx, {
      actor,
      action: 'bank-account.disable',
      subject: `bank account ${accountId}`,
      before: { disabled: false },
      after: { disabled: true },
    })
    return requireBankAccount(tx, accountId)
  })
}
