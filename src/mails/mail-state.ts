import { MINUTE_MS, addMs, type RealTime } from '#shared/time.ts'
import type { Receipt } from '#transactions/store.ts'
import { handedOverAt, type Reminder } from './store.ts'

/** A mail that was handed over this long ago will not be confirmed any more. */
const CONFIRMATION_MS = 3 * MINUTE_MS

/** Mails that were handed over at this time or earlier, by the database's clock, will not be answered any more. */
export function confirmedBy(now: RealTime): RealTime {
  return addMs(now, -CONFIRMATION_MS)
}

/** The stored status; `unconfirmed` where the mail was handed over so long before `now`, by the database's clock, that no answer will come. */
export function mailState<Mail extends Reminder | Receipt>(mail: Mail, now: RealTime): Mail['status'] | 'unconfirmed' {
  const at = handedOverAt(mail)
  return at !== null && at <= confirmedBy(now) ? 'unconfirmed' : mail.status
}
