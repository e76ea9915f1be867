import type { Context } from '#context.ts'
import type { Tally } from './tally.ts'
import { runSender } from './sender.ts'

/** Sends due events until none is left. Returns the outcomes. */
export async function deliverDue(ctx: Context, options: { readonly signal?: AbortSignal } = {}): Promise<Tally> {
  return runSender(ctx, { signal: options.signal ?? new AbortController().signal, untilIdle: true })
}
