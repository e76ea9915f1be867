import { existsSync, linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { apps, paymentMethods } from '#apps/store.ts'
import { checkoutSessions } from '#checkout/store.ts'
import type { Config } from '#config.ts'
import type { Context } from '#context.ts'
import { customers } from '#customers/store.ts'
import { openDatabase } from '#db/connect.ts'
import { auditLog, commitTokens } from '#commands/store.ts'
import { jobRuns } from '#db/store.ts'
import type { AnyTable } from '#db/table.ts'
import { idempotencyKeys } from '#http/store.ts'
import { allocations, payments, refunds } from '#payments/store.ts'
import { plans, prices } from '#plans/store.ts'
import { bankMails } from '#bank-mail/store.ts'
import { bankAccountAssignments, bankAccounts } from '#bank-accounts/store.ts'
import { providerAccounts, providerPauses, providerSessions } from '#providers/store.ts'
import { realtimeWrites } from '#realtime/store.ts'
import { dailyMails, reminders } from '#renewals/store.ts'
import { parseKeyring, type Keyring } from '#shared/crypto.ts'
import { openLog } from '#shared/log.ts'
import { systemClock, type Clock } from '#shared/time.ts'
import { endUsers, paymentApplications, subscriptions, trialGrants } from '#subscriptions/store.ts'
import { providerEvents, transactionChanges, transactions } from '#transactions/store.ts'
import { deliveryAttempts, events } from '#webhooks/store.ts'

/** Every table, for the connection and for the test that holds them against the migrations. */
export const TABLES: readonly AnyTable[] = [
  apps,
  paymentMethods,
  bankAccounts,
  bankAccountAssignments,
  plans,
  prices,
  customers,
  endUsers,
  subscriptions,
  trialGrants,
  paymentApplications,
  realtimeWrites,
  transactions,
  transactionChanges,
  payments,
  allocations,
  refunds,
  providerEvents,
  providerAccounts,
  providerSessions,
  providerPauses,
  bankMails,
  checkoutSessions,
  events,
  deliveryAttempts,
  reminders,
  dailyMails,
  idempotencyKeys,
  auditLog,
  commitTokens,
  jobRuns,
]

export interface OpenContextOptions {
  readonly config: Config
  /** Goes into each log line: `daemon`, `cli`, the name of a job. */
  readonly thread: string
  readonly poolSize?: number
  readonly clock?: Clock
  readonly wakeSender?: () => void
  readonly count?: Context['count']
}

export interface OpenContext {
  readonly ctx: Context
  readonly close: () => Promise<void>
}

/** Connects to the database and gathers what commands work with. The caller closes it. */
export async function openContext(options: OpenContextOptions): Promise<OpenContext> {
  const {
    config,
    thread,
    poolSize,
    clock = systemClock,
    wakeSender = () => undefined,
    count = () => undefined,
  } = options
  const log = openLog(config.logLevel, { thread })
  const keyring = openKeyring(config)
  const { db, close } = await openDatabase(config, TABLES, poolSize === undefined ? {} : { poolSize })
  return { ctx: { config, db, clock, log, keyring, wakeSender, count }, close }
}

/** The keys of the settings; in development, without any, the one generated under `home`. */
export function openKeyring(config: Config): Keyring {
  return parseKeyring(config.encryptionKeys ?? generatedKey(config.home))
}

function generatedKey(home: string): string {
  const path = join(home, 'encryption-key')
  if (!existsSync(path)) writeKey(home, path)
  return readFileSync(path, 'utf8').trim()
}

/** Written aside and linked into place, so that of processes that start together one key wins and none is read half-written. */
function writeKey(home: string, path: string): void {
  mkdirSync(home, { recursive: true, mode: 0o700 })
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`
  writeFileSync(draft, `dev:${randomBytes(32).toString('base64')}\n`, { flag: 'wx', mode: 0o600 })
  try {
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    unlinkSync(draft)
  }
}
