import type { Transaction } from './store.ts'

/**
 * The reference that a payer quotes for a payment, the same on every page and in every mail: the transfer code, or else the number (R342).
 */
export function referenceOf({ transferCode, id }: Pick<Transaction, 'transferCode' | 'id'>): string {
  return transferCode ?? String(id)
}
