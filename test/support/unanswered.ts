import { UNTRIED } from '#mail/mail-columns.ts'
import type { RealTime } from '#shared/time.ts'

/** The state of a mail that was handed over then, and that the mail server has not answered. */
export function unansweredSince(at: RealTime) {
  return { ...UNTRIED, status: 'claimed', claimedAt: at, handedOverAt: at, lastError: 'no answer' } as const
}
