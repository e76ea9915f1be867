import type { Context } from '#context.ts'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import { databaseNow } from '#db/database-now.ts'
import { messageOf } from '#shared/errors.ts'
import { MINUTE_MS, addMs, type RealTime } from '#shared/time.ts'
import { truncate } from '#shared/truncate.ts'
import { bankSilent } from './conditions/bank-silence.ts'
import { ledgerFault } from './conditions/ledger-fault.ts'
import { backupOld, clockSkew, diskLow, jobSilent } from './conditions/machine.ts'
import { methodFailing } from './conditions/method-failing.ts'
import { accountPaused, mailUnreadable, moneyWaiting, webhooksFailed } from './conditions/review.ts'
import type { Evaluation, Memory, ReadConditions } from './conditions/evaluation.ts'
import type { AlertKind, AlertCondition } from './kinds.ts'
import { channelsOf, contentOf, writeMessages } from './messages.ts'
import { insertAlert, listMutes, listOpenAlerts, markAnnounced, markClosed, type Alert } from './store.ts'

export type Readers = Readonly<Record<AlertKind, ReadConditions>>

/** How the conditions of each kind are found. */
export const READERS: Readers = {
  money_waiting: moneyWaiting,
  webhooks_failed: webhooksFailed,
  mail_unreadable: mailUnreadable,
  bank_silent: bankSilent,
  account_paused: accountPaused,
  job_silent: jobSilent,
  ledger_fault: ledgerFault,
  disk_low: diskLow,
  backup_old: backupOld,
  clock_skew: clockSkew,
  method_failing: methodFailing,
}

/** After a longer pause between two evaluations, such as a stop of the daemon, nothing counts as silent at first. */
const MAX_PAUSE_MS = 3 * MINUTE_MS

export function newMemory(now: RealTime): Memory {
  return { watchingSince: now, lastEvaluatedAt: now, usual: null }
}

/** What an evaluation did. */
export interface EvaluationResult {
  readonly opened: number
  readonly closed: number
}

/**
 * Compares what is wrong now with the open alerts: opens one for each condition that began, closes those whose condition is over, each only
 * once even if several daemons evaluate. A kind that cannot be read leaves its alerts as they are.
 */
export async function evaluateAlerts(
  ctx: Context,
  memory: Memory,
  readers: Readers = READERS,
): Promise<EvaluationResult> {
  const now = await databaseNow(ctx, ctx.db)
  rememberEvaluation(ctx, memory, now)
  const evaluation: Evaluation = { now, open: await listOpenAlerts(ctx.db), memory }
  const mutes = await listMutes(ctx.db, now)
  let opened = 0
  let closed = 0
  for (const [kind, read] of Object.entries(readers) as [AlertKind, ReadConditions][]) {
    const conditions = await readOrNull(ctx, kind, () => read(ctx, evaluation))
    if (!conditions) continue
    const news = differences(evaluation.open, kind, conditions)
    const isMuted = mutes.has(kind)
    for (const condition of news.begun) if (await open(ctx, condition, isMuted, now)) opened += 1
    for (const alert of news.over) if (await close(ctx, alert, now)) closed += 1
    if (!isMuted) for (const alert of news.unannounced) await announce(ctx, alert)
  }
  return { opened, closed }
}

function rememberEvaluation({ config }: Context, memory: Memory, now: RealTime): void {
  const pause = Math.max(MAX_PAUSE_MS, 3 * config.alerts.seconds * 1000)
  if (now > addMs(memory.lastEvaluatedAt, pause)) memory.watchingSince = now
  memory.lastEvaluatedAt = now
}

async function readOrNull(
  ctx: Context,
  kind: AlertKind,
  read: () => Promise<AlertCondition[]>,
): Promise<AlertCondition[] | null> {
  try {
    return (await read()).map(fitted)
  } catch (error) {
    ctx.log.warn({ kind, error: messageOf(error) }, 'a condition for alerts cannot be read')
    return null
  }
}

/** Cuts the texts to the length of their columns. */
function fitted(condition: AlertCondition): AlertCondition {
  return { ...condition, subject: truncate(condition.subject, 191), text: truncate(condition.text, 1000) }
}

interface Differences {
  readonly begun: readonly AlertCondition[]
  readonly over: readonly Alert[]
  /** They began while their kind was muted. */
  readonly unannounced: readonly Alert[]
}

function differences(open: readonly Alert[], kind: AlertKind, conditions: readonly AlertCondition[]): Differences {
  const known = open.filter((alert) => alert.kind === kind)
  const subjects = new Set(conditions.map(({ subject }) => subject))
  return {
    begun: conditions.filter(({ subject }) => !known.some((alert) => alert.subject === subject)),
    over: known.filter(({ subject }) => !subjects.has(subject)),
    unannounced: known.filter(({ isAnnounced, subject }) => !isAnnounced && subjects.has(subject)),
  }
}

async function open(ctx: Context, condition: AlertCondition, isMuted: boolean, now: RealTime): Promise<boolean> {
  return inTransaction(ctx, async (tx) => {
    const { kind, subject } = condition
    const written = { openKey: `${kind} ${subject}`, openedAt: now, closedAt: null, notifiedAt: null }
    const alert = { ...condition, ...written, isAnnounced: !isMuted }
    const id = await insertAlert(tx, alert)
    if (id !== null && !isMuted) await queueMessages(ctx, tx, { ...alert, id }, 'alert.opened')
    return id !== null
  })
}

async function close(ctx: Context, alert: Alert, now: RealTime): Promise<boolean> {
  return inTransaction(ctx, async (tx) => {
    if (!(await markClosed(tx, alert.id, now))) return false
    if (alert.isAnnounced) await queueMessages(ctx, tx, alert, 'alert.closed')
    return true
  })
}

async function announce(ctx: Context, alert: Alert): Promise<void> {
  await inTransaction(ctx, async (tx) => {
    if (await markAnnounced(tx, alert.id)) await queueMessages(ctx, tx, alert, 'alert.opened')
  })
}

async function queueMessages(
  { config }: Context,
  tx: Tx,
  alert: Alert,
  type: 'alert.opened' | 'alert.closed',
): Promise<void> {
  await writeMessages(tx, channelsOf(config), contentOf(alert, type))
}
