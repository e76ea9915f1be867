import { z } from 'zod'
import { command } from '#commands/command.ts'
import type { Tx } from '#commands/transaction.ts'
import { randomDigits } from '#shared/crypto.ts'
import { InvalidInput } from '#shared/errors.ts'
import { noFieldsLeft } from '#shared/no-fields-left.ts'
import { emailAddress, name } from '#shared/validate.ts'
import { findBank } from './banks.ts'
import { findBankAccount, insertBankAccount, type BankAccount } from './store.ts'

const FORWARD_CODE_DIGITS = 10

const AddBankAccountInput = z.strictObject({
  /** Short code, BIN or name, in any case. */
  bank: z.string(),
  number: z
    .string()
    .transform((value) => value.replace(/[\s.-]/g, ''))
    .refine((value) => /^[0-9A-Za-z]{1,19}$/.test(value), 'must have 1 to 19 letters and digits'),
  holder: name(191),
  /** The address that the bank writes to. */
  mailbox: emailAddress.optional(),
})

/** Adds an account that apps can be paid to, with its own forward code. Throws `invalid_request`. */
export const addBankAccount = command({
  name: 'bank-account.add',
  input: AddBankAccountInput,
  async run(tx, { bank: bankText, number, holder, mailbox = null, ...others }) {
    noFieldsLeft(others)
    const bank = findBank(bankText)
    if (!bank) throw new InvalidInput('bank', 'must be the short code, BIN or name of a bank of the VietQR list')
    const account = await insertAccount(tx, { bank: bank.code, bin: bank.bin, number, holder, mailbox })
    await tx.audit({
      subject: `bank account ${account.id}`,
      after: { bank: bank.code, number, holder, mailbox },
    })
    return account
  },
})

async function insertAccount(
  tx: Tx,
  row: Pick<BankAccount, 'bank' | 'bin' | 'number' | 'holder' | 'mailbox'>,
): Promise<BankAccount> {
  for (;;) {
    const forwardCode = randomDigits(FORWARD_CODE_DIGITS)
    const accountId = await insertBankAccount(tx, { ...row, forwardCode, disabledAt: null, createdAt: tx.now })
    const account = accountId === null ? null : await findBankAccount(tx, accountId)
    if (account) return account
  }
}
