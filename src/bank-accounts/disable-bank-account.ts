import { command, nothing } from '#commands/command.ts'
import { lockBankAccount, setBankAccountDisabled } from './store.ts'

/** Disables an account: its mails complete no payment, and apps that have it offer no bank transfer. Throws `not_found`. */
export const disableBankAccount = command({
  name: 'bank-account.disable',
  input: nothing,
  async run(tx, _input, { accountId }: { readonly accountId: number }) {
    const account = await lockBankAccount(tx, accountId)
    if (account.disabledAt) return account
    await setBankAccountDisabled(tx, accountId, tx.now)
    await tx.audit({ subject: `bank account ${accountId}`, before: { disabled: false }, after: { disabled: true } })
    return { ...account, disabledAt: tx.now }
  },
})
