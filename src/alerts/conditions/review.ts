import { listApps } from '#apps/store.ts'
import type { AlertCondition } from '#alerts/kinds.ts'
import { listFailedWebhooks, listMailsOfSandboxes } from '#alerts/store.ts'
import type { Context } from '#context.ts'
import type { Queries } from '#db/queries.ts'
import { listWaiting, type ReviewKind, type WaitingRow } from '#review/store.ts'
import { counted } from '#shared/counted.ts'
import { englishMoney } from '#shared/money.ts'
import { DAY_MS, addMs } from '#shared/time.ts'
import type { Evaluation } from './evaluation.ts'

const PATIENCE_MS = DAY_MS
const MAX_ROWS = 5000
const NAMES: Partial<Record<ReviewKind, string>> = {
  flagged_payment: 'transaction',
  unapplied_payment: 'payment',
  unmatched_bank_mail: 'bank mail',
}

/** Money that has waited for an operator for over a day. Money of sandbox apps does not count. */
export async function moneyWaiting(ctx: Context, evaluation: Evaluation): Promise<AlertCondition[]> {
  const rows = await listReal(ctx, evaluation, ['flagged_payment', 'unapplied_payment', 'unmatched_bank_mail'])
  const limit = addMs(evaluation.now, -PATIENCE_MS)
  return rows
    .filter(({ since }) => since <= limit)
    .map((row) => ({ row, subject: `${NAMES[row.kind] ?? row.kind} ${row.id}` }))
    .map(({ row, subject }) => ({
      kind: 'money_waiting',
      subject,
      text: `${moneyOf(row)} of ${subject} (${row.reason ?? row.subject ?? ''}) has waited for over a day: billing-cli review`,
      since: row.since,
    }))
}

/** Notices of banks that no reader understands, by bank. */
export async function mailUnreadable(ctx: Context, evaluation: Evaluation): Promise<AlertCondition[]> {
  const rows = await listReal(ctx, evaluation, ['unreadable_bank_mail'])
  const banks = Map.groupBy(rows, ({ subject }) => subject ?? 'unknown bank')
  return [...banks].map(([bank, mails]) => ({
    kind: 'mail_unreadable',
    subject: bank,
    text: `${counted(mails.length, 'mail')} of ${bank} cannot be read, and may report money: billing-cli bank-mail list --unmatched`,
    since: mails[0]?.since ?? evaluation.now,
  }))
}

/** Providers' accounts that do not answer, or refuse their credentials. */
export async function accountPaused({ db }: Context, { now }: Evaluation): Promise<AlertCondition[]> {
  const rows = await listWaiting(db, now, { kinds: ['paused_account'], appId: null, limit: MAX_ROWS })
  const sandboxes = await listSandboxes(db)
  return rows.map(({ appId, subject, reason, since }) => ({
    kind: 'account_paused',
    subject: `${markOf(appId !== null && sandboxes.has(appId))}app ${appId} ${subject}`,
    text: `${subject} of app ${appId} is paused (${reason}): its payments are not looked up. Check its credentials; billing-cli reconcile --app ${appId} polls at once`,
    since,
  }))
}

/** Apps that did not accept events, after all retries. */
export async function webhooksFailed({ db }: Context): Promise<AlertCondition[]> {
  const apps = await listFailedWebhooks(db)
  return apps.map(({ appId, isSandbox, failed, since }) => ({
    kind: 'webhooks_failed',
    subject: `${markOf(isSandbox)}app ${appId}`,
    text: `app ${appId} did not accept ${counted(failed, 'event')}: billing-cli webhook test ${appId}, then webhook retry --failed ${appId}`,
    since,
  }))
}

/** Comes first, so that an operator who is woken by an alert sees at once that it can wait. */
function markOf(isSandbox: boolean): string {
  return isSandbox ? '[TEST] ' : ''
}

async function listSandboxes(db: Queries): Promise<ReadonlySet<number>> {
  return new Set((await listApps(db)).filter(({ isSandbox }) => isSandbox).map(({ id }) => id))
}

/** The waiting rows, without those of sandbox apps and without mails about bank accounts that only sandbox apps use. */
async function listReal({ db }: Context, { now }: Evaluation, kinds: readonly ReviewKind[]): Promise<WaitingRow[]> {
  const exceptApps = [...(await listSandboxes(db))]
  const exceptMails = (await listMailsOfSandboxes(db)).map(({ id }) => id)
  return listWaiting(db, now, { kinds, appId: null, exceptApps, exceptMails, limit: MAX_ROWS })
}

function moneyOf({ amount, currency }: WaitingRow): string {
  return amount === null || currency === null ? 'money of unknown amount' : englishMoney(amount, currency)
}
