import type { Context } from '#context.ts'
import { DAY_MS, addMs, formatTimestamp } from '#shared/time.ts'
import { listForwardingRows } from './store.ts'

/** Longer than it takes to set up a mailbox. */
const SHOWN_FOR_MS = 7 * DAY_MS
const MAX_LISTED = 50

/** A request to forward a mailbox to an account's secret address. */
export interface ForwardingRequestView {
  readonly id: number
  readonly received_at: string
  readonly bank_account_id: number | null
  readonly mailbox: string | null
  readonly code: string | null
  readonly link: string | null
}

/** Gmail's requests of the last seven days to the addresses of accounts, for operators to confirm; newest first. */
export async function listForwardingRequests(ctx: Context): Promise<ForwardingRequestView[]> {
  const mails = await listForwardingRows(ctx.db, addMs(ctx.clock.now(), -SHOWN_FOR_MS), MAX_LISTED)
  return mails.map(({ id, receivedAt, bankAccountId, forwarding }) => ({
    id,
    received_at: formatTimestamp(receivedAt),
    bank_account_id: bankAccountId,
    mailbox: forwarding?.mailbox ?? null,
    code: forwarding?.code ?? null,
    link: forwarding?.link ?? null,
  }))
}
