import type { Context } from '#context.ts'
import { listBankAccountRows, type BankAccount } from './store.ts'

/** Every account, disabled ones too, the oldest first. */
export async function listBankAccounts(ctx: Context): Promise<BankAccount[]> {
  return listBankAccountRows(ctx.db)
}
