import type { PaymentLink } from '@payos/node'
import type { Context } from '#context.ts'
import { endSession } from '#providers/open-session.ts'
import { noteEvent } from '#providers/note-event.ts'
import type { ProviderSession } from '#providers/store.ts'
import { findPaymentOf } from '#payments/store.ts'
import { confirmPayment, type ConfirmOutcome } from '#transactions/confirm-payment.ts'
import { transferTime } from './order.ts'
import { PaidLink, transfersOf, WHOLE, type Transfer } from './transfers.ts'

type Taken = ConfirmOutcome['kind'] | 'refused' | 'none'

/** How much an outcome tells: of several transfers, the most telling one is answered. */
const WEIGHT: Readonly<Record<Taken, number>> = {
  none: 0,
  duplicate: 1,
  already_completed: 2,
  unknown_transaction: 3,
  wrong_currency: 3,
  refused: 3,
  underpaid: 4,
  processed: 5,
}

/**
 * Takes the money that PayOS has received for a payment link. Each bank transfer is a payment of its own, known by link and reference,
 * so that partial transfers add up and none counts twice. `reported` is the transfer that a notification is about, null for a look-up.
 * Returns what the most telling of them did.
 */
export async function confirmTransfers(
  ctx: Context,
  session: ProviderSession,
  link: PaymentLink,
  reported: Transfer | null,
): Promise<Taken> {
  const read = PaidLink.safeParse(link)
  if (!read.success || String(read.data.orderCode) !== session.reference || read.data.amount !== session.amount) {
    return refuse(ctx, session)
  }
  const { id } = read.data
  const isTakenWhole = (await findPaymentOf(ctx.db, 'payos', `${id}:${WHOLE}`)) !== null
  let result: Taken = isTakenWhole ? 'already_completed' : 'none'
  for (const transfer of isTakenWhole ? [] : transfersOf(read.data, reported)) {
    const reference = `${id}:${transfer.reference}`
    const outcome = await confirmPayment(ctx, {
      provider: 'payos',
      providerAccountId: session.providerAccountId,
      eventId: reported === null ? null : reference,
      eventType: 'transfer',
      reference,
      transactionId: session.transactionId,
      amount: transfer.amount,
      currency: 'VND',
      paidAt: transferTime(transfer.transactionDateTime) ?? ctx.clock.now(),
    })
    if (WEIGHT[outcome.kind] > WEIGHT[result]) result = outcome.kind
  }
  if (result === 'processed' || result === 'already_completed') await endSession(ctx, session, 'paid')
  return result
}

async function refuse(ctx: Context, session: ProviderSession): Promise<'refused'> {
  const order = session.reference ?? ''
  await noteEvent(ctx, {
    provider: 'payos',
    eventId: `mismatch:${order}`,
    eventType: 'payment-link',
    appId: session.appId,
    transactionId: session.transactionId,
    outcome: 'refused',
    note: `order ${order} at PayOS is not the one that was opened (another order code or amount); nothing of it was applied`,
  })
  return 'refused'
}
