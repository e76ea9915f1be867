import { updateAppRow, type App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { recordAudit } from '#commands/audit.ts'
import { inTransaction } from '#commands/transaction.ts'
import { invalidField } from '#shared/errors.ts'
import { requireBankAccount } from './require-bank-account.ts'
import { rememberAssignment, type BankAccount } from './store.ts'

/** From now on the app's customers transfer to this account. Throws `not_found`, and `invalid_request` for a disabled one. */
export async function assignBankAccount(
  ctx: Context,
  actor: string,
  app: App,
  accountId: number,
): Promise<BankAccount> {
  return inTransaction(ctx, async (tx) => {
    const account = await requireBankAccount(tx, accountId)
    if (account.disabledAt) throw invalidField('id', 'is a disabled bank account')
    await updateAppRow(tx, app.id, { bankAccountId: accountId })
    await rememberAssignment(tx, app.id, accountId)
    await recordAudit(tx, {
      actor,
      action: 'bank-account.assign',
      appId: app.id,
      subject: `app ${app.id}`,
      before: { bank_account_id: app.bankAccountId },
      after: { bank_account_id: accountId },
    })
    return account
  })
}
