import { acb } from './acb.ts'
import { cake } from './cake.ts'
import { mb } from './mb.ts'
import type { BankReader } from './reader.ts'
import { timo } from './timo.ts'

/**
 * The banks whose mails are read. To add one:
 * 1. get real mails about money in and about money out, and note what distinguishes them beyond doubt;
 * 2. write `<bank>.ts` beside this file: the short code and BIN of the VietQR list, the domain that it signs with, the addresses and
 *    subjects of its notices, how they begin, the way it writes amounts, and `readNotice`. Demand the whole template, and each label as
 *    often as the template has it;
 * 3. add it to the list below;
 * 4. add both mails to `test/support/bank-mails.ts`; the tests of this folder run over all mails in that file.
 */
export const BANK_READERS: readonly BankReader[] = [acb, timo, cake, mb]

/** The reader of a bank's short code; null if its mails are not read. */
export function bankReaderOf(code: string | null): BankReader | null {
  return BANK_READERS.find((reader) => reader.code === code) ?? null
}

/** Whether mails about an account of this BIN do not name it, so that its mailbox must be known for them to count. */
export function needsMailbox(bin: string): boolean {
  return BANK_READERS.some(({ bins, namesAccount }) => bins.includes(bin) && !namesAccount)
}
