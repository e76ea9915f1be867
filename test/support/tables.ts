import { operators } from '#operators/store.ts'
import { appLogos, apps, paymentMethods } from '#apps/store.ts'
import { checkoutSessions } from '#checkout/store.ts'
import { customers } from '#customers/store.ts'
import { alertChores, alertMessages, alertMutes, alerts } from '#alerts/store.ts'
import { approvals } from '#approvals/store.ts'
import { auditLog, commitTokens } from '#commands/store.ts'
import { daemons } from '#backups/daemons/store.ts'
import { jobRuns } from '#upkeep/job-runs/store.ts'
import type { Table } from '#db/table.ts'
import { idempotencyKeys } from '#http/store.ts'
import { allocations, payments, refunds } from '#payments/store.ts'
import { plans, prices } from '#plans/store.ts'
import { promotions, promotionUses } from '#promotions/store.ts'
import { bankMails } from '#bank-mail/store.ts'
import { bankAccountAssignments, bankAccounts } from '#bank-accounts/store.ts'
import { providerAccounts } from '#providers/accounts/store.ts'
import { providerPauses } from '#providers/pauses/store.ts'
import { providerSessions } from '#providers/store.ts'
import { realtimeWrites } from '#realtime/store.ts'
import { dailyMails } from '#mails/limits/store.ts'
import { reminders } from '#mails/reminders/store.ts'
import { endUsers, ledgerLines, subscriptions, trialGrants } from '#subscriptions/store.ts'
import { providerEvents, transactionChanges, transactions } from '#transactions/store.ts'
import { receipts } from '#transactions/receipts/store.ts'
import { deliveryAttempts } from '#webhooks/attempts/store.ts'
import { events } from '#webhooks/store.ts'

/** A table of any row type: its name and columns. */
export type AnyTable = Pick<Table<unknown>, 'name' | 'options'>

/** Every table that a store describes. */
export const TABLES: readonly AnyTable[] = [
  operators,
  approvals,
  apps,
  appLogos,
  paymentMethods,
  bankAccounts,
  bankAccountAssignments,
  plans,
  prices,
  promotions,
  promotionUses,
  customers,
  endUsers,
  subscriptions,
  trialGrants,
  ledgerLines,
  realtimeWrites,
  transactions,
  receipts,
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
  daemons,
  alerts,
  alertMessages,
  alertMutes,
  alertChores,
]
