import type { PayOS } from '@payos/node'
import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { inTransaction } from '#commands/transaction.ts'
import type { Queries } from '#db/queries.ts'
import { admit } from '#http/admission.ts'
import type { ProviderAccount } from '#providers/accounts.ts'
import { noteEvent } from '#providers/note-event.ts'
import { parseContent, unverified } from '#providers/notification-content.ts'
import type { NotificationResult } from '#providers/provider.ts'
import { findReportedSession, expediteLookup, type ProviderSession, type ReportedSession } from '#providers/store.ts'
import { englishMoney } from '#shared/money.ts'
import { addMs, MINUTE_MS } from '#shared/time.ts'
import { payosClient } from './client.ts'
import { confirmTransfers, NOTHING_TAKEN } from './confirm-transfers.ts'
import { payosAccounts, type PayosCredentials } from './accounts.ts'
import { clientOf, findLink } from './find-link.ts'
import { readNotification, type PayosNotification } from './notification.ts'
import { isOwnOrder } from './order.ts'
import { isSignedByOne } from './signature.ts'
import type { Transfer } from './transfers.ts'

type Status = 'processed' | 'underpaid' | 'already_completed' | 'duplicate' | 'ignored' | 'refused'
export type PayosResult = NotificationResult<Status>

/**
 * Takes one notification of PayOS. Throws `invalid_request` (400) for malformed or wrongly signed ones. Ignores an unknown order, such as
 * the one in PayOS's registration test, if an app's key signed it; one that looks like ours is kept for operators. The signature covers only
 * `data` and no time, so the order is looked up at PayOS before anything completes. Throws `provider_error` if PayOS cannot be asked.
 */
export async function receivePayosNotification(ctx: Context, body: Buffer): Promise<PayosResult> {
  const notification = readNotification(parseContent(body))
  if (!notification) throw unverified()
  const { data, signature } = notification
  const { session, accounts } = await admit(ctx, 'notifier', async (db) => {
    const found = await findReportedSession(db, 'payos', { reference: String(data.orderCode), eventId: null })
    return { session: found, accounts: await possibleSigners(ctx, db, found) }
  })
  const isSignedBy = (...signers: typeof accounts): boolean => {
    const keys = signers.map(({ credentials }) => credentials.checksumKey)
    return isSignedByOne(keys, data, signature)
  }
  if (!isSignedBy(...accounts)) throw unverified()
  if (!session) await noteUnknown(ctx, accounts.find((account) => isSignedBy(account))?.appId ?? null, data)
  if (!session || data.code !== '00') return { status: 'ignored', toClose: null }
  const own = accounts.find(({ id }) => id === session.providerAccountId)
  const client = own ? await payosClient(ctx.config, own.credentials) : await clientOf(ctx, session)
  return askPayos(ctx, client, session, data)
}

/** Keeps a paid order of ours that is not in the database, because an older backup was restored, or another service uses the account. */
async function noteUnknown(
  ctx: Context,
  appId: number | null,
  { code, orderCode, reference, amount, description }: PayosNotification['data'],
): Promise<void> {
  if (code !== '00' || !isOwnOrder(orderCode, description)) return
  await noteEvent(ctx, {
    provider: 'payos',
    // A signer for one app cannot use up the event ids of another.
    eventId: `unknown:${orderCode}:${reference}@${appId ?? ''}`,
    eventType: 'transfer',
    appId,
    transactionId: null,
    outcome: 'refused',
    note: `PayOS reported ${englishMoney(amount, 'VND')} (${reference}) for order ${orderCode}, which this service did not open`,
  })
}

/**
 * The accounts whose keys may have signed: those of the order's app, or of every app for an unknown order. The order's own account counts
 * even if nothing is open under it, because money can arrive late.
 */
async function possibleSigners(
  ctx: Context,
  db: Queries,
  session: ProviderSession | null,
): Promise<ProviderAccount<PayosCredentials>[]> {
  const accounts = await payosAccounts.inUse(ctx, session?.appId ?? null, db)
  const isOwnMissing = session && !accounts.some(({ id }) => id === session.providerAccountId)
  const own = isOwnMissing ? await payosAccounts.find(ctx, session.providerAccountId, db) : null
  return [...accounts, ...(own ? [own] : [])]
}

async function askPayos(
  ctx: Context,
  client: PayOS,
  session: ReportedSession,
  reported: Transfer,
): Promise<PayosResult> {
  const link = await findLink(ctx, client, session)
  const taken = link ? await confirmTransfers(ctx, session, link, reported) : { ...NOTHING_TAKEN, isUnconfirmed: true }
  const { result, isMoreAsked, isUnconfirmed } = taken
  if (isUnconfirmed) await pollSoon(ctx, session, reported)
  switch (result) {
    case 'none':
      return { status: 'ignored', toClose: null }
    case 'unknown_transaction':
    case 'wrong_currency':
      return { status: 'refused', toClose: null }
    case 'processed':
    case 'underpaid':
    case 'already_completed':
    case 'duplicate':
    case 'refused':
      return { status: result, toClose: isMoreAsked ? session.transactionId : null }
  }
}

/**
 * Polls the order again soon, because PayOS reported money that it does not list yet. An ended session is not polled again: the report is
 * probably the same payment under another id, and operators see it in case it is not.
 */
async function pollSoon(ctx: Context, session: ReportedSession, { reference, amount }: Transfer): Promise<void> {
  const isPolled = await inTransaction(ctx, async (tx) =>
    expediteLookup(tx, session.id, addMs(await databaseNow(ctx, tx), MINUTE_MS)),
  )
  if (isPolled) return
  const order = session.reference ?? ''
  await noteEvent(ctx, {
    provider: 'payos',
    eventId: `unlisted:${order}:${reference}`,
    eventType: 'transfer',
    appId: session.appId,
    transactionId: session.transactionId,
    outcome: 'refused',
    note: `PayOS reported ${englishMoney(amount, 'VND')} (${reference}) for order ${order}, and did not list it when it was asked; if PayOS lists it now and Paygate does not, have PayOS send the notification again`,
  })
}
