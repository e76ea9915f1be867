import type { Context } from '#context.ts'
import { runSender } from '#webhooks/sender.ts'
import type { Tally } from '#webhooks/tally.ts'

/** Sends due events until none is left. Returns the outcomes. */
export async function deliverDue(ctx: Context, options: { readonly signal?: AbortSignal } = {}): Promise<Tally> {
  return runSender(ctx, { signal: options.signal ?? new AbortController().signal, untilIdle: true })
}
