import { updateAppRow, type App } from '#apps/store.ts'
import { command, nothing } from '#commands/command.ts'
import { invalidField } from '#shared/errors.ts'
import { requireBankAccount } from './require-bank-account.ts'
import { recordAssignment } from './store.ts'

/** Makes the app's customers transfer to this account from now on. Throws `not_found`, and `invalid_request` for a disabled one. */
export const assignBankAccount = command({
  name: 'bank-account.assign',
  input: nothing,
  async run(tx, _input, { app, accountId }: { readonly app: App; readonly accountId: number }) {
    const account = await requireBankAccount(tx, accountId)
    if (account.disabledAt) throw invalidField('id', 'is a disabled bank account')
    await updateAppRow(tx, app.id, { bankAccountId: accountId })
    await recordAssignment(tx, app.id, accountId)
    await tx.audit({
      appId: app.id,
      subject: `app ${app.id}`,
      before: { bank_account_id: app.bankAccountId },
      after: { bank_account_id: accountId },
    })
    return account
  },
})
