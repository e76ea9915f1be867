import type { PaymentLink } from '@payos/node'
import { provider } from '#commands/caller.ts'
import { command, nothing } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import type { Tx } from '#commands/transaction.ts'
import type { Context } from '#context.ts'
import { confirmInSession, type SessionOutcome } from '#providers/confirm-on-session.ts'
import { noteEvent } from '#providers/note-event.ts'
import { endPaidSession, type ProviderSession } from '#providers/store.ts'
import { sumOfPayments } from '#payments/store.ts'
import { lockEndUserOf } from '#subscriptions/store.ts'
import type { ConfirmOutcome } from '#transactions/confirm-payment.ts'
import { transactions } from '#transactions/store.ts'
import { parsePayosTime } from './order.ts'
import {
  bankReferenceOf,
  countsUnlisted,
  isAmong,
  PaidLink,
  transfersOf,
  transfersToBook,
  unlistedRest,
  WHOLE,
  type Booked,
  type Transfer,
} from './transfers.ts'

type Result = Exclude<ConfirmOutcome['kind'], 'known_money'> | 'refused' | 'none'

/** The outcome of booking a link's money. */
export interface Taken {
  /** The most significant outcome of several transfers. */
  readonly result: Result
  /** As in `SessionOutcome`. */
  readonly isMoreAsked: boolean
  /** Whether PayOS reported a transfer that it does not confirm yet. */
  readonly isUnconfirmed: boolean
}

export const NOTHING_TAKEN: Taken = { result: 'none', isMoreAsked: false, isUnconfirmed: false }

/** Which outcome is reported if the transfers of a link have several: the one with the highest number. */
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
  found: PaymentLink,
  reported: Transfer | null,
): Promise<Taken> {
  const read = PaidLink.safeParse(found)
  if (!read.success) return refuse(ctx, session, 'is described in a way that Paygate cannot read')
  if (String(read.data.orderCode) !== session.reference || read.data.amount !== session.amount)
    return refuse(ctx, session, 'is not the one that was opened (another order code or amount)')
  if (hasNothing(read.data)) return { ...NOTHING_TAKEN, isUnconfirmed: reported !== null }
  return perform(ctx, provider('payos'), confirmLink, undefined, { session, link: read.data, reported })
}

function hasNothing({ amountPaid = 0, transactions }: PaidLink): boolean {
  return amountPaid === 0 && (transactions ?? []).length === 0
}

interface LinkScope {
  readonly session: ProviderSession
  readonly link: PaidLink
  readonly reported: Transfer | null
}

const confirmLink = command({
  name: 'link.confirm',
  input: nothing,
  async run(tx, _input, { session, link, reported }: LinkScope): Promise<Taken> {
    // Locked first, so that a look-up and a notification at the same moment do not book the same money in two ways.
    await lockEndUserOf(tx, transactions, session.transactionId)
    const booked = await bookedOf(tx, link)
    const transfers = transfersOf(link, reported)
    const outcomes: SessionOutcome[] = []
    for (const transfer of transfersToBook(link, transfers, booked))
      outcomes.push(await book(tx, session, link, transfer, { isReported: reported !== null }))
    const unlisted = countsUnlisted(link, transfers) ? unlistedRest(link, await bookedOf(tx, link)) : []
    for (const money of unlisted) outcomes.push(await book(tx, session, link, money, { isReported: false }))
    const isUnconfirmed = reported !== null && !booked.hasUnlisted && !isAmong(transfers, reported)
    // All of it was booked before, as unlisted money.
    if (booked.hasUnlisted && outcomes.length === 0)
      return { result: 'already_completed', isMoreAsked: await endPaidSession(tx, session), isUnconfirmed }
    return { ...outcomes.reduce(mostSignificant, NOTHING_TAKEN), isUnconfirmed }
  },
})

async function bookedOf(tx: Tx, { id }: PaidLink): Promise<Booked> {
  const of = { start: `${id}:`, named: `${id}:${WHOLE}` }
  const { sum, hasNamed: hasUnlisted } = await sumOfPayments(tx, 'payos', of)
  return { sum, hasUnlisted }
}

async function book(
  tx: Tx,
  session: ProviderSession,
  link: PaidLink,
  transfer: Transfer,
  { isReported }: { readonly isReported: boolean },
): Promise<SessionOutcome> {
  const reference = `${link.id}:${transfer.reference}`
  return confirmInSession(tx, session, {
    events: isReported ? [{ eventId: reference, eventType: 'transfer' }] : [],
    reference,
    chargeReference: bankReferenceOf(transfer),
    amount: transfer.amount,
    currency: 'VND',
    paidAt: parsePayosTime(transfer.transactionDateTime) ?? tx.now,
  })
}

function mostSignificant(taken: Taken, { outcome, isMoreAsked }: SessionOutcome): Taken {
  const result = outcome.kind === 'known_money' ? 'already_completed' : outcome.kind
  return {
    ...taken,
    result: WEIGHT[result] > WEIGHT[taken.result] ? result : taken.result,
    isMoreAsked: taken.isMoreAsked || isMoreAsked,
  }
}

async function refuse(ctx: Context, session: ProviderSession, reason: string): Promise<Taken> {
  const order = session.reference ?? ''
  await noteEvent(ctx, {
    provider: 'payos',
    eventId: `mismatch:${order}`,
    eventType: 'payment-link',
    appId: session.appId,
    transactionId: session.transactionId,
    outcome: 'refused',
    note: `order ${order} at PayOS ${reason}; nothing of it was applied`,
  })
  return { ...NOTHING_TAKEN, result: 'refused' }
}
