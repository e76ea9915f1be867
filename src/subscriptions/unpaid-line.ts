import { appNow } from '#apps/app-time.ts'
import type { App } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import { findPrice } from '#plans/store.ts'
import { wholeSeconds } from '#shared/time.ts'
import { intervalOf } from './decide-payment.ts'
import type { NewLine } from './record-change.ts'
import type { Subscription } from './store.ts'

/**
 * The ledger line of a change without a payment: an import, a plan switch, or an operator's end. It counts as opened and paid at its own
 * time (R101). `priceId` and `inTrial` are those after the change.
 */
export async function unpaidLine(
  tx: Tx,
  app: App,
  kind: 'imported' | 'switched' | 'ended',
  { priceId, inTrial }: Pick<Subscription, 'priceId' | 'inTrial'>,
): Promise<NewLine> {
  const found = await findPrice(tx, app.id, priceId)
  if (!found) throw new Error(`a subscription names price ${priceId}, which does not exist`)
  const now = appNow(app, tx.now)
  return {
    transactionId: null,
    kind,
    interval: intervalOf(found.price, false),
    isTrial: inTrial,
    paidAt: wholeSeconds(now),
    openedAt: now,
    isAccepted: false,
  }
}
