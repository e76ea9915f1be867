import type { PaymentLink } from '@payos/node'
import type { Context } from '#context.ts'
import { confirmOnSession } from '#providers/confirm-on-session.ts'
import { endSession } from '#providers/open-session.ts'
import { noteEvent } from '#providers/note-event.ts'
import type { ProviderSession } from '#providers/store.ts'
import { findPaymentOf, sumOfPayments } from '#payments/store.ts'
import type { ConfirmOutcome } from '#transactions/confirm-payment.ts'
import { transferTime } from './order.ts'
import { PaidLink, transfersOf, unlistedOf, WHOLE, type Transfer } from './transfers.ts'

type Result = Exclude<ConfirmOutcome['kind'], 'repeated'> | 'refused' | 'none'

/** The outcome of booking a link's money. */
export interface Taken {
  /** The most significant outcome of several transfers. */
  readonly result: Result
  /** As in `SessionOutcome`. */
  readonly isMoreAsked: boolean
}

export const NOTHING_TAKEN: Taken = { result: 'none', isMoreAsked: false }

/** The significance of outcomes. */
const WEIGHT: Readonly<Record<Result, number>> = {
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
 * Books the money that PayOS has received for a payment link. Each bank transfer is a payment of its own, identified by link and
 * reference, so that partial transfers add up and none counts twice. `reported` is the transfer of a notification, null for a look-up.
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
  if (await findPaymentOf(ctx.db, 'payos', `${id}:${WHOLE}`)) {
    await endSession(ctx, session, 'paid')
    return { result: 'already_completed', isMoreAsked: false }
  }
  let taken = NOTHING_TAKEN
  for (const transfer of await transfersToBook(ctx, read.data, reported)) {
    const reference = `${id}:${transfer.reference}`
    const { outcome, isMoreAsked } = await confirmOnSession(ctx, session, {
      events: reported === null ? [] : [{ eventId: reference, eventType: 'transfer' }],
      reference,
      amount: transfer.amount,
      currency: 'VND',
      paidAt: transferTime(transfer.transactionDateTime) ?? ctx.clock.now(),
    })
    const result = outcome.kind === 'repeated' ? 'already_completed' : outcome.kind
    taken = {
      result: WEIGHT[result] > WEIGHT[taken.result] ? result : taken.result,
      isMoreAsked: taken.isMoreAsked || isMoreAsked,
    }
  }
  return taken
}

/** The transfers of a link. If it is paid and lists none, one for all that is not booked yet. */
async function transfersToBook(ctx: Context, link: PaidLink, reported: Transfer | null): Promise<Transfer[]> {
  const transfers = transfersOf(link, reported)
  const received = transfers.length === 0 ? unlistedOf(link) : null
  if (received === null) return transfers
  const rest = received - (await sumOfPayments(ctx.db, 'payos', `${link.id}:`))
  return rest > 0 ? [{ reference: WHOLE, amount: rest }] : []
}

async function refuse(ctx: Context, session: ProviderSession): Promise<Taken> {
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
  return { result: 'refused', isMoreAsked: false }
}
