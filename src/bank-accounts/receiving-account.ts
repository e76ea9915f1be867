import type { App } from '#apps/store.ts'
import type { Queries } from '#db/queries.ts'
import { findBankAccount, type BankAccount } from './store.ts'

/** The account that the app's customers transfer to; null if none is assigned, or the one that is was disabled. */
export async function receivingAccount(db: Queries, app: Pick<App, 'bankAccountId'>): Promise<BankAccount | null> {
  const account = app.bankAccountId === null ? null : await findBankAccount(db, app.bankAccountId)
  return account?.disabledAt === null ? account : null
}
