import { bigint, exact, id, realTime, words } from '#db/columns.ts'
import { table, type Row } from '#db/table.ts'
import { insertedNew, unlessDuplicate } from '#db/database-error.ts'
import type { Queries } from '#db/queries.ts'
import type { Tx } from '#commands/transaction.ts'
import { found } from '#shared/errors.ts'
import type { RealTime } from '#shared/time.ts'

/** An account that customers transfer to. Several apps may be paid to one. */
export const bankAccounts = table('bank_accounts', {
  id: id(),
  /** Short code of the VietQR list. */
  bank: exact('bank', 32),
  bin: exact('bin', 6),
  number: exact('number', 19),
  holder: words('holder', 191),
  /** Ten secret digits in the address to which the bank's mails about this account are forwarded. */
  forwardCode: exact('forward_code', 10),
  /** The address that the bank writes to; null if mails to any are taken. */
  mailbox: exact('mailbox', 254).nullable(),
  disabledAt: realTime('disabled_at').nullable(),
  createdAt: realTime('created_at'),
})
export type BankAccount = Row<typeof bankAccounts>

/** An account that an app has, or had before. */
export const bankAccountAssignments = table('bank_account_assignments', {
  id: id(),
  appId: bigint('app_id'),
  bankAccountId: bigint('bank_account_id'),
  /** When it was assigned first. */
  assignedAt: realTime('assigned_at'),
  /** When the app was given another account, the last time; null while it has this one. */
  endedAt: realTime('ended_at').nullable(),
})
export type BankAccountAssignment = Row<typeof bankAccountAssignments>

/** The id of the new account; null if another has the forward code. */
export async function insertBankAccount(tx: Tx, row: Omit<BankAccount, 'id'>): Promise<number | null> {
  return unlessDuplicate('bank_accounts_forward_code', tx.insert(bankAccounts, row))
}

export async function findBankAccount(db: Queries, accountId: number): Promise<BankAccount | null> {
  return db.one(bankAccounts, 'WHERE id = ?', [accountId])
}

/** The account as it is now, locked until the commit: for a change that depends on what it has. Throws `not_found`. */
export async function lockBankAccount(tx: Tx, accountId: number): Promise<BankAccount> {
  return found(await tx.one(bankAccounts, 'WHERE id = ? FOR UPDATE', [accountId]), 'bank account')
}

export async function findBankAccountByForwardCode(db: Queries, forwardCode: string): Promise<BankAccount | null> {
  return db.one(bankAccounts, 'WHERE forward_code = ?', [forwardCode])
}

/** The one app that has the account or had it; null if there are several, or none. */
export async function findSoleOwner(db: Queries, bankAccountId: number): Promise<number | null> {
  const owners = await db.all(bankAccountAssignments, 'WHERE bank_account_id = ? LIMIT 2', [bankAccountId])
  return owners.length === 1 ? (owners[0]?.appId ?? null) : null
}

/** All accounts, disabled ones too, the oldest first. */
export async function listBankAccounts(db: Queries): Promise<BankAccount[]> {
  return db.all(bankAccounts, 'ORDER BY id')
}

export async function setMailbox(tx: Tx, accountId: number, mailbox: string | null): Promise<void> {
  await tx.update(bankAccounts, { id: accountId }, { mailbox })
}

/** Records that the app has this account from now on, and no other. */
export async function recordAssignment(tx: Tx, appId: number, bankAccountId: number): Promise<void> {
  await tx.update(bankAccountAssignments, { appId, endedAt: null }, { endedAt: tx.now })
  const row = { appId, bankAccountId, assignedAt: tx.now, endedAt: null }
  const isNew = await insertedNew('bank_account_assignments_app_account', tx.insert(bankAccountAssignments, row))
  if (!isNew) await tx.update(bankAccountAssignments, { appId, bankAccountId }, { endedAt: null })
}

export async function findAssignment(
  db: Queries,
  appId: number,
  bankAccountId: number,
): Promise<BankAccountAssignment | null> {
  return db.one(bankAccountAssignments, 'WHERE app_id = ? AND bank_account_id = ?', [appId, bankAccountId])
}

export async function listAssignments(db: Queries): Promise<BankAccountAssignment[]> {
  return db.all(bankAccountAssignments, 'ORDER BY id')
}

/** The accounts that the app has had, the present one among them. */
export async function listAccountsOfApp(db: Queries, appId: number): Promise<BankAccount[]> {
  const assigned = 'WHERE id IN (SELECT bank_account_id FROM bank_account_assignments WHERE app_id = ?)'
  return db.all(bankAccounts, assigned, [appId])
}

/** The accounts of this number at the banks of these BINs, the oldest first. */
export async function listBankAccountsNumbered(
  db: Queries,
  bins: readonly string[],
  number: string,
): Promise<BankAccount[]> {
  return db.all(bankAccounts, 'WHERE bin IN (?) AND number = ? ORDER BY id', [bins, number])
}

export async function setBankAccountDisabled(tx: Tx, accountId: number, disabledAt: RealTime): Promise<void> {
  await tx.update(bankAccounts, { id: accountId }, { disabledAt })
}
