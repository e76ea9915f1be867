import type { Context } from '#context.ts'
import { DAY_MS, addMs, formatTimestamp } from '#shared/time.ts'
import { listForwardingRows } from './store.ts'

/** Longer than it takes to set up a mailbox; an old code is of no use. */
const SHOWN_FOR_MS = 7 * DAY_MS
const MOST_LISTED = 50

/** A mailbox that asks to be forwarded to an account's secret address. */
export interface ForwardingRequestView {
  readonly id: number
  readonly received_at: string
  readonly bank_account_id: number | null
  readonly mailbox: string | null
  readonly code: string | null
  readonly link: string | null
}

/** What Gmail sent to accounts' addresses in the last seven days, so that an operator can say yes; newest first. */
export async function listForwardingRequests(ctx: Context): Promise<ForwardingRequestView[]> {
  const mails = await listForwardingRows(ctx.db, addMs(ctx.clock.now(), -SHOWN_FOR_MS), MOST_LISTED)
  return mails.map(({ id, receivedAt, bankAccountId, forwarding }) => ({
    id,
    received_at: formatTimestamp(receivedAt),
    bank_account_id: bankAccountId,
    mailbox: forwarding?.mailbox ?? null,
    code: forwarding?.code ?? null,
    link: forwarding?.link ?? null,
  }))
}
