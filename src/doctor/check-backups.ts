import { newestVerified } from '#backups/backup-folder.ts'
import { refuseWrongRecipient } from '#backups/encryption.ts'
import type { Context } from '#context.ts'
import { passed, warning, type CheckResult } from '#shared/check-result.ts'
import { messageOf } from '#shared/errors.ts'
import { formatUtc, HOUR_MS } from '#shared/time.ts'

/** A day, and time for the copy that is made every day. */
export const MAX_BACKUP_AGE_MS = 26 * HOUR_MS
const SET_RECIPIENT =
  'make a key with age-keygen elsewhere, and set BILLING_BACKUP_RECIPIENT to its public part (docs/operating.md, Backups)'

/** Whether a service in production has a backup of the last day that is known to be good. */
export async function checkBackups({ config, clock }: Context): Promise<CheckResult[]> {
  if (config.env !== 'production') return []
  const { recipient, folder } = config.backup
  if (recipient === null)
    return [warning('backups', 'BILLING_BACKUP_RECIPIENT is not set, so that none is made', SET_RECIPIENT)]
  const wrong = await refuseWrongRecipient(recipient).then(() => null, messageOf)
  if (wrong !== null) return [warning('backups', `none can be made: ${wrong}`, SET_RECIPIENT)]
  const taken = await newestVerified(folder, clock.now())
  if (taken !== null && taken.getTime() >= clock.now().getTime() - MAX_BACKUP_AGE_MS)
    return [passed('backups', `the newest verified one is of ${formatUtc(taken)}`)]
  const detail = taken === null ? `none in ${folder} was verified` : `the newest verified one is of ${formatUtc(taken)}`
  return [
    warning('backups', detail, 'billing-cli backup create, then billing-cli backup verify, each day (the timer does)'),
  ]
}
