import { z } from 'zod'
import { command } from '#commands/command.ts'
import { noFieldsLeft } from '#shared/no-fields-left.ts'
import { emailAddress } from '#shared/validate.ts'
import { lockBankAccount, setMailbox } from './store.ts'

const UpdateBankAccountInput = z.strictObject({
  /** The address that the bank writes to; empty to take mails to any address. */
  mailbox: z.union([z.literal(''), emailAddress], 'must be one e-mail address, or empty'),
})

/** Changes the mailbox of an account. Throws `not_found` and `invalid_request`. */
export const updateBankAccount = command({
  name: 'bank-account.update',
  input: UpdateBankAccountInput,
  async run(tx, { mailbox: address, ...others }, { accountId }: { readonly accountId: number }) {
    noFieldsLeft(others)
    const mailbox = address === '' ? null : address
    const account = await lockBankAccount(tx, accountId)
    if (account.mailbox === mailbox) return account
    await setMailbox(tx, accountId, mailbox)
    await tx.audit({
      subject: `bank account ${accountId}`,
      before: { mailbox: account.mailbox },
      after: { mailbox },
    })
    return { ...account, mailbox }
  },
})
