import type { Context } from '#context.ts'
import { provider } from '#commands/caller.ts'
import { command, nothing } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import type { Tx } from '#commands/transaction.ts'
import { confirmPayment, type ConfirmedPayment, type ConfirmOutcome } from '#transactions/confirm-payment.ts'
import { endPaidSession, type ProviderSession } from './store.ts'

/** Money that arrived through a session. The session supplies the other fields of `ConfirmedPayment`. */
export type SessionPayment = Omit<ConfirmedPayment, 'provider' | 'providerAccountId' | 'transactionId'>

export interface SessionOutcome {
  readonly outcome: ConfirmOutcome
  /** Whether an open session may ask for more than is due now. */
  readonly isMoreAsked: boolean
}

/** `confirmPayment` for money that arrived through a session. Ends the session in the same transaction once the money is enough. */
export async function confirmOnSession(
  ctx: Context,
  session: ProviderSession,
  payment: SessionPayment,
): Promise<SessionOutcome> {
  return perform(ctx, provider(session.provider), confirm, undefined, { session, payment })
}

const confirm = command({
  name: 'session.confirm',
  input: nothing,
  run: (tx, _input, { session, payment }: { session: ProviderSession; payment: SessionPayment }) =>
    confirmInSession(tx, session, payment),
})

/** Outcomes after which nothing is due. */
const PAID: readonly ConfirmOutcome['kind'][] = ['processed', 'already_completed', 'known_money']

/** The step of `confirmOnSession`, for a command that first reads, under the same lock, what was booked. */
export async function confirmInSession(
  tx: Tx,
  session: ProviderSession,
  payment: SessionPayment,
): Promise<SessionOutcome> {
  const { provider: code, providerAccountId, transactionId } = session
  const outcome = await confirmPayment(tx, { ...payment, provider: code, providerAccountId, transactionId })
  if (outcome.kind === 'underpaid') return { outcome, isMoreAsked: true }
  const isPaid = PAID.includes(outcome.kind)
  return { outcome, isMoreAsked: isPaid && (await endPaidSession(tx, session)) }
}
