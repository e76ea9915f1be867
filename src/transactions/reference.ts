import type { Transaction } from './store.ts'

/** What a payer quotes about a payment, the same on every page and in every mail: the transfer code, else the number (R342). */
export function referenceOf({ transferCode, id }: Pick<Transaction, 'transferCode' | 'id'>): string {
  return transferCode ?? String(id)
}
