import type { Tx } from '#commands/transaction.ts'
import { databaseNow } from '#db/database-now.ts'
import type { MailFailure } from '#mail/mail.ts'
import { addMs, doublingPauseMs, HOUR_MS, MINUTE_MS, type RealTime } from '#shared/time.ts'
import { noteError, releaseAfterFailure, type Claim, type Released } from './claims/store.ts'
import type { MailKind } from './mail-kinds.ts'

/** A mail that the server refused waits this long, then twice as long each time, up to an hour. */
const FIRST_PAUSE_MS = MINUTE_MS
const MAX_PAUSE_MS = HOUR_MS

/** Why a mail was not confirmed as sent. */
export interface Failed {
  readonly failure: MailFailure
  readonly reason: string
  /** The address that it was for; null if the mail could not be composed. */
  readonly to: string | null
}

/** Records why a mail was not confirmed as sent. If it did not leave, a later sweep tries it again, or it is given up. */
export async function recordFailure(tx: Tx, kind: MailKind, claim: Claim, failed: Failed): Promise<void> {
  const { failure, reason: lastError } = failed
  if (failure === 'unknown') await noteError(tx, claim, lastError)
  else
    await releaseAfterFailure(tx, claim, {
      ...nextAfter(kind, claim, failed, await databaseNow(tx.ctx, tx)),
      lastError,
    })
}

function nextAfter(
  { givenUp, unreachablePauseMs, maxFailures }: MailKind,
  claim: Claim,
  { failure, to }: Failed,
  now: RealTime,
): Released {
  if (failure === 'no_such_address') return { status: givenUp, refusedTo: to }
  if (failure === 'unreachable') return { status: 'failed', retryAt: addMs(now, unreachablePauseMs) }
  const failures = claim.failures + 1
  if (failures > maxFailures) return { status: givenUp, failures }
  const pauseMs = doublingPauseMs(FIRST_PAUSE_MS, claim.failures, MAX_PAUSE_MS)
  return { status: 'failed', retryAt: addMs(now, pauseMs), failures }
}
