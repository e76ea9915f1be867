import type { Queries } from '#db/queries.ts'
import { notFound } from '#shared/errors.ts'
import { findBankAccount, type BankAccount } from './store.ts'

/** The account of this id; throws `not_found`. */
export async function requireBankAccount(db: Queries, accountId: number): Promise<BankAccount> {
  const account = await findBankAccount(db, accountId)
  if (!account) throw notFound('bank account')
  return account
}
