import type { Config } from '#config/config.ts'
import { findBank } from './banks.ts'
import type { BankAccount } from './store.ts'

/** A bank account for operators. */
export interface PresentedBankAccount {
  readonly bank_account_id: number
  readonly bank: string
  readonly bank_name: string
  readonly account_number: string
  readonly account_holder: string
  readonly forward_code: string
  /** Where the bank's mails about the account are to be forwarded; null if `BILLING_RELAY_ADDRESS` is not set. */
  readonly forward_address: string | null
  /** The address that the bank writes to; null if mails to any are taken. */
  readonly mailbox: string | null
  readonly disabled: boolean
}

export function presentBankAccount(account: BankAccount, config: Pick<Config, 'relay'>): PresentedBankAccount {
  return {
    bank_account_id: account.id,
    bank: account.bank,
    bank_name: findBank(account.bin)?.name ?? account.bank,
    account_number: account.number,
    account_holder: account.holder,
    forward_code: account.forwardCode,
    forward_address: config.relay.address?.replace('{code}', account.forwardCode) ?? null,
    mailbox: account.mailbox,
    disabled: account.disabledAt !== null,
  }
}
