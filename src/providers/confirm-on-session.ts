import type { Context } from '#context.ts'
import { provider } from '#commands/caller.ts'
import { command, nothing } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import { bookPayment, type ConfirmedPayment, type ConfirmOutcome } from '#transactions/confirm-payment.ts'
import { endPaidSession, type ProviderSession, type ReportedSession } from './store.ts'

/** Money that arrived through a session; the other fields are the session's. */
export type SessionPayment = Omit<ConfirmedPayment, 'provider' | 'providerAccountId' | 'transactionId' | 'owner'>

export interface SessionOutcome {
  readonly outcome: ConfirmOutcome
  /** Whether an open session may ask for more than is due now. */
  readonly isMoreAsked: boolean
}

/** `confirmPayment` for money that arrived through a session. Ends the session in the same transaction once the money is enough. */
export async function confirmOnSession(
  ctx: Context,
  session: ProviderSession | ReportedSession,
  payment: SessionPayment,
): Promise<SessionOutcome> {
  const { appId, provider: code, providerAccountId, transactionId } = session
  const owner = 'externalRef' in session ? { owner: { appId, externalRef: session.externalRef } } : {}
  const confirmed = { ...payment, provider: code, providerAccountId, transactionId, ...owner }
  return perform(ctx, provider(code), confirm, undefined, { session, payment: confirmed })
}

const confirm = command({
  name: 'session.confirm',
  input: nothing,
  async run(
    tx,
    _input,
    { session, payment }: { session: ProviderSession; payment: ConfirmedPayment },
  ): Promise<SessionOutcome> {
    const outcome = await bookPayment(tx, payment)
    const isPaid = outcome.kind === 'processed' || outcome.kind === 'already_completed'
    return { outcome, isMoreAsked: isPaid ? await endPaidSession(tx, session) : outcome.kind === 'underpaid' }
  },
})
