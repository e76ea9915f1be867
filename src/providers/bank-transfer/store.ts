import { EntitySchema, In, IsNull } from 'typeorm'
import { bigint, exact, id, instant, nullable, words } from '#db/columns.ts'
import { insertedId, insertedNew } from '#db/transaction.ts'
import type { ReadOnly, Tx } from '#db/transaction.ts'
import { transactions } from '#transactions/store.ts'

/** An account that customers transfer to. Several apps may be paid to one. */
export interface BankAccount {
  id: number
  /** Short code of the VietQR list. */
  bank: string
  bin: string
  number: string
  holder: string
  /** Ten digits: they stand in the address to which the bank's mails about this account are forwarded, and are secret. */
  forwardCode: string
  /** The address that the bank writes to; null where mails to any are taken. */
  mailbox: string | null
  disabledAt: Date | null
  createdAt: Date
}

export const bankAccounts = new EntitySchema<BankAccount>({
  name: 'bank_accounts',
  columns: {
    id,
    bank: exact('bank', 32),
    bin: exact('bin', 6),
    number: exact('number', 19),
    holder: words('holder', 191),
    forwardCode: exact('forward_code', 10),
    mailbox: nullable(exact('mailbox', 254)),
    disabledAt: nullable(instant('disabled_at')),
    createdAt: instant('created_at'),
  },
})

/** An account that an app has, or had before. */
export interface BankAccountAssignment {
  id: number
  appId: number
  bankAccountId: number
  /** The first time. */
  assignedAt: Date
}

export const bankAccountAssignments = new EntitySchema<BankAccountAssignment>({
  name: 'bank_account_assignments',
  columns: {
    id,
    appId: bigint('app_id'),
    bankAccountId: bigint('bank_account_id'),
    assignedAt: instant('assigned_at'),
  },
})

/** The id of the new account; null where another has the forward code. */
export async function insertBankAccount(tx: Tx, row: Omit<BankAccount, 'id'>): Promise<number | null> {
  let accountId = 0
  const insert = tx.manager.insert(bankAccounts, row).then((result) => {
    accountId = insertedId(result)
  })
  return (await insertedNew('bank_accounts_forward_code', insert)) ? accountId : null
}

export async function findBankAccount(db: ReadOnly, accountId: number): Promise<BankAccount | null> {
  return db.manager.findOneBy(bankAccounts, { id: accountId })
}

export async function findBankAccountByForwardCode(db: ReadOnly, forwardCode: string): Promise<BankAccount | null> {
  return db.manager.findOneBy(bankAccounts, { forwardCode })
}

/** All accounts, the oldest first. */
export async function listBankAccountRows(db: ReadOnly): Promise<BankAccount[]> {
  return db.manager.find(bankAccounts, { order: { id: 'ASC' } })
}

export async function setMailbox(tx: Tx, accountId: number, mailbox: string | null): Promise<void> {
  await tx.manager.update(bankAccounts, { id: accountId }, { mailbox })
}

/** Notes that the app has the account, unless it had it before. */
export async function rememberAssignment(tx: Tx, appId: number, bankAccountId: number): Promise<void> {
  await insertedNew(
    'bank_account_assignments_app_account',
    tx.manager.insert(bankAccountAssignments, { appId, bankAccountId, assignedAt: tx.now }),
  )
}

export async function listAssignments(db: ReadOnly): Promise<BankAccountAssignment[]> {
  return db.manager.find(bankAccountAssignments)
}

/** The accounts that the app has had, the present one among them. */
export async function listAccountsOfApp(db: ReadOnly, appId: number): Promise<BankAccount[]> {
  const assigned = await db.manager.findBy(bankAccountAssignments, { appId })
  return db.manager.findBy(bankAccounts, { id: In(assigned.map(({ bankAccountId }) => bankAccountId)) })
}

/** The accounts of this number at the banks of these BINs, the oldest first. */
export async function listBankAccountsNumbered(
  db: ReadOnly,
  bins: readonly string[],
  number: string,
): Promise<BankAccount[]> {
  return db.manager.find(bankAccounts, { where: { bin: In([...bins]), number }, order: { id: 'ASC' } })
}

export async function disableBankAccountRow(tx: Tx, accountId: number): Promise<void> {
  await tx.manager.update(bankAccounts, { id: accountId, disabledAt: IsNull() }, { disabledAt: tx.now })
}

/** Gives a pending transaction its transfer code, unless it has one; false where another transaction has this code. */
export async function giveTransferCode(tx: Tx, transactionId: number, transferCode: string): Promise<boolean> {
  const codeless = { id: transactionId, status: 'pending' as const, transferCode: IsNull() }
  return insertedNew('transactions_transfer_code', tx.manager.update(transactions, codeless, { transferCode }))
}
