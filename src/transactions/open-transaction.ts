import { appNow } from '#apps/app-time.ts'
import type { App } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import { insertTransaction, type Transaction } from './store.ts'

export type NewTransaction = Pick<
  Transaction,
  | 'endUserId'
  | 'externalRef'
  | 'mode'
  | 'planRef'
  | 'planName'
  | 'planId'
  | 'priceId'
  | 'customerId'
  | 'isTrial'
  | 'purpose'
  | 'isByRenewalLink'
  | 'amount'
  | 'discountAmount'
  | 'promotionCode'
  | 'currency'
  | 'renewsEnd'
  | 'metadata'
>

/** Adds a pending transaction, which any method may complete. Returns its id. */
export async function openTransaction(tx: Tx, app: App, transaction: NewTransaction): Promise<number> {
  const now = appNow(app, tx.now)
  return insertTransaction(tx, {
    ...transaction,
    appId: app.id,
    amountReceived: 0,
    amountRefunded: 0,
    amountUsed: 0,
    amountLeft: 0,
    status: 'pending',
    providerCode: null,
    flagReason: null,
    flaggedAt: null,
    transferCode: null,
    bankPageOpenedAt: null,
    createdAt: now,
    completedAt: null,
    updatedAt: now,
    resolution: null,
    resolvedAt: null,
  })
}
