import { z } from 'zod'
import type { Context } from '#context.ts'
import { recordAudit } from '#commands/audit.ts'
import { inTransaction } from '#commands/transaction.ts'
import { emailAddress, validate } from '#shared/validate.ts'
import { requireBankAccount } from './require-bank-account.ts'
import { setMailbox, type BankAccount } from './store.ts'

const UpdateBankAccountInput = z.strictObject({
  /** The address that the bank writes to; empty where mails to any shall be taken. */
  mailbox: z.union([z.literal(''), emailAddress], 'must be one e-mail address, or empty'),
})

/** Changes what an operator may change of an account. Throws `not_found` and `invalid_request`. */
export async function updateBankAccount(
  ctx: Context,
  actor: string,
  accountId: number,
  input: unknown,
): Promise<BankAccount> {
  const mailbox = readMailbox(input)
  return inTransaction(ctx, async (tx) => {
    const account = await requireBankAccount(tx, accountId)
    if (account.mailbox === mailbox) return account
    await setMailbox(tx, accountId, mailbox)
    await recordAudit(tx, {
      actor,
      action: 'bank-account.update',
      subject: `bank account ${accountId}`,
      before: { mailbox: account.mailbox },
      after: { mailbox },
    })
    return { ...account, mailbox }
  })
}

/** The account as `updateBankAccount` would leave it, and sentences for the operator. Throws as it would. */
export async function previewUpdate(
  ctx: Context,
  accountId: number,
  input: unknown,
): Promise<{ readonly account: BankAccount; readonly effects: readonly string[] }> {
  const mailbox = readMailbox(input)
  const before = await requireBankAccount(ctx.db, accountId)
  const effects = [`mailbox of bank account ${accountId}: ${before.mailbox ?? 'any'} -> ${mailbox ?? 'any'}`]
  return { account: { ...before, mailbox }, effects }
}

function readMailbox(input: unknown): string | null {
  const { mailbox } = validate(UpdateBankAccountInput, input)
  return mailbox === '' ? null : mailbox
}
