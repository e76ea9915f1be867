import { lockApp, updateAppRow, type App } from '#apps/store.ts'
import { command, nothing } from '#commands/command.ts'
import { invalidField } from '#shared/errors.ts'
import { lockBankAccount, recordAssignment } from './store.ts'

/** Makes the app's customers transfer to this account from now on. Throws `not_found`, and `invalid_request` for a disabled one. */
export const assignBankAccount = command({
  name: 'bank-account.assign',
  input: nothing,
  async run(tx, _input, { app: { id: appId }, accountId }: { readonly app: App; readonly accountId: number }) {
    const account = await lockBankAccount(tx, accountId)
    if (account.disabledAt) throw invalidField('id', 'is a disabled bank account')
    const { bankAccountId } = await lockApp(tx, appId)
    await updateAppRow(tx, appId, { bankAccountId: accountId })
    await recordAssignment(tx, appId, accountId)
    await tx.audit({
      appId,
      subject: `app ${appId}`,
      before: { bank_account_id: bankAccountId },
      after: { bank_account_id: accountId },
    })
    return account
  },
})
