import { checkRelay } from '#bank-mail/check-relay.ts'
import type { Context } from '#context.ts'
import { messageOf } from '#shared/errors.ts'
import { checkBaseAddress, checkMetrics } from './check-addresses.ts'
import { checkBackups } from './check-backups.ts'
import { checkDatabase, checkDurability, checkSchema } from './check-database.ts'
import { checkDisk } from './check-disk.ts'
import { checkBankMails, checkFlagged, checkLedger, checkNotifications, checkPayments } from './check-money.ts'
import { checkProviders } from './check-providers.ts'
import { checkSecrets } from './check-secrets.ts'
import { checkMail } from './check-mail.ts'
import { checkJobs, checkOutbox, checkRealtime, checkReceipts, checkReminders, checkWebhooks } from './check-work.ts'
import { failed, type CheckResult } from '#shared/check-result.ts'

type Check = (ctx: Context) => Promise<CheckResult[]>

/** These need only a database server that answers. */
const SERVER_CHECKS: Readonly<Record<string, Check>> = {
  database: checkDatabase,
  durability: checkDurability,
  schema: checkSchema,
  disk: checkDisk,
  backups: checkBackups,
  address: checkBaseAddress,
  metrics: checkMetrics,
  smtp: checkMail,
}

/** These read the tables, so they run only if the schema is up to date. */
const TABLE_CHECKS: Readonly<Record<string, Check>> = {
  keys: checkSecrets,
  relay: checkRelay,
  providers: checkProviders,
  jobs: checkJobs,
  outbox: checkOutbox,
  webhooks: checkWebhooks,
  reminders: checkReminders,
  receipts: checkReceipts,
  realtime: checkRealtime,
  flagged: checkFlagged,
  payments: checkPayments,
  mails: checkBankMails,
  notifications: checkNotifications,
  ledger: checkLedger,
}

export interface ExamineOptions {
  /** Explains to operators what a check threw. */
  readonly explain?: (error: unknown) => string
  readonly onProgress?: (check: string) => void
}

/** Examines the service from its database and settings, whether or not the daemon is up. Reads only; sends nothing to customers. */
export async function examine(ctx: Context, options: ExamineOptions = {}): Promise<CheckResult[]> {
  const first = await runChecks(ctx, SERVER_CHECKS, options)
  if (first.some(({ check, ok }) => !ok && (check === 'schema' || check === 'database'))) return first
  return [...first, ...(await runChecks(ctx, TABLE_CHECKS, options))]
}

/** A check that throws is a failure, and does not keep the others from running. */
async function runChecks(
  ctx: Context,
  checks: Readonly<Record<string, Check>>,
  { explain = messageOf, onProgress = () => undefined }: ExamineOptions,
): Promise<CheckResult[]> {
  const results: CheckResult[] = []
  for (const [name, check] of Object.entries(checks)) {
    onProgress(name)
    try {
      results.push(...(await check(ctx)))
    } catch (error) {
      results.push(
        failed(
          name,
          `could not be checked: ${explain(error)}`,
          'fix what failed above, then run billing-cli doctor again',
        ),
      )
    }
  }
  return results
}
