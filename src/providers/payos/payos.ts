import type { PayOS } from '@payos/node'
import type { Context } from '#context.ts'
import { callProvider, providerError } from '#providers/call-provider.ts'
import { openSession, type OpenedSession } from '#providers/open-session.ts'
import { abandonSession } from '#providers/session-status.ts'
import { CLOSED, defineProvider, type PaymentRequest, type PolledStatus, type Sessions } from '#providers/provider.ts'
import { httpsSources } from '#providers/redirect-sources.ts'
import type { ProviderSession } from '#providers/store.ts'
import { addMs, HOUR_MS, unixSeconds } from '#shared/time.ts'
import { payosApi, payosClient, payosFailureOf } from './client.ts'
import { confirmTransfers } from './confirm-transfers.ts'
import { payosCredentials } from './credentials.ts'
import { payosAccounts } from './accounts.ts'
import { clientOf, findLink } from './find-link.ts'
import { NOTIFICATION_BYTES } from './notification.ts'
import { transactionsIn, transferTextOf, isOurLink, linkEnd, newOrderCode, paymentPageOf } from './order.ts'
import { receivePayosNotification } from './receive-notification.ts'

/** PayOS's error code for an order code that already exists. */
const ORDER_EXISTS = '231'
const CANCELLED = new Set(['CANCELLED', 'FAILED'])
const EXPIRED = 'EXPIRED'
/** A transfer sent in the last minute of a link may be reported after its end. */
const FINAL_AFTER_MS = HOUR_MS

/** Open payment links at PayOS. */
const sessions: Sessions = {
  async pollStatus(ctx, session) {
    const link = await findLink(ctx, await clientOf(ctx, session), session)
    const isFinal = ctx.clock.now() > addMs(session.expiresAt, FINAL_AFTER_MS)
    const open: PolledStatus = { status: 'open', asks: session.amount - (link?.amountPaid ?? 0) }
    if (!link) return isFinal ? CLOSED : open
    const { result } = await confirmTransfers(ctx, session, link, null)
    if (result === 'processed' || result === 'already_completed') return { status: 'paid' }
    if (result === 'refused' || isFinal || CANCELLED.has(link.status)) return CLOSED
    return link.status === EXPIRED ? { status: 'expired' } : open
  },

  async close(ctx, session) {
    const client = await clientOf(ctx, session)
    try {
      await callProvider(ctx, payosApi, 'payment-requests.cancel', () =>
        client.paymentRequests.cancel(Number(session.reference), 'paid in another way'),
      )
    } catch (thrown) {
      throw providerError(payosApi, thrown)
    }
  },
}

/** Bank transfers through PayOS: one payment link per transaction (R212). */
export const payos = defineProvider({
  method: 'payos',
  code: 'payos',
  hasQrCode: true,
  texts: {
    en: {
      name: 'QR payment (payOS)',
      hint: 'Scan with your banking app. Confirmed at once.',
      pay: 'Pay in your banking app',
    },
    vi: {
      name: 'Quét mã QR (payOS)',
      hint: 'Bằng ứng dụng ngân hàng. Xác nhận ngay.',
      pay: 'Thanh toán qua ứng dụng ngân hàng',
    },
  },
  reportsTransfers: true,
  transactionsIn,
  credentials: payosCredentials,
  notifications: {
    path: '/api/v1/webhooks/bank-transfer-provider',
    maxBytes: NOTIFICATION_BYTES,
    receive: (ctx, { body }) => receivePayosNotification(ctx, body),
  },
  redirectSources: (config) => httpsSources(config, config.payosApiBase),
  accepts: (amount, currency) => currency === 'VND' && Number.isSafeInteger(amount) && amount > 0,
  sessions,

  async open(ctx, request) {
    const { id: providerAccountId, credentials } = await payosAccounts.requireCurrent(ctx, request.app.id)
    const client = await payosClient(ctx.config, credentials)
    return openSession(ctx, sessions, request, {
      provider: 'payos',
      providerAccountId,
      expiresAt: linkEnd(request.expiresAt, ctx.clock.now()),
      newReference: () => newOrderCode(request.transaction.id),
      create: (session) => createLink(ctx, client, request, session),
    })
  },
})

async function createLink(
  ctx: Context,
  client: PayOS,
  request: PaymentRequest,
  session: ProviderSession,
): Promise<OpenedSession | null> {
  const orderCode = Number(session.reference)
  try {
    const link = await callProvider(ctx, payosApi, 'payment-requests.create', () =>
      client.paymentRequests.create({
        orderCode,
        amount: session.amount,
        description: transferTextOf(session.transactionId),
        returnUrl: request.returnUrl,
        cancelUrl: request.cancelUrl,
        expiredAt: unixSeconds(session.expiresAt),
      }),
    )
    if (link.orderCode !== orderCode || link.amount !== session.amount) return null
    return { reference: String(orderCode), url: link.checkoutUrl }
  } catch (thrown) {
    const failure = payosFailureOf(thrown)
    if (failure.code === ORDER_EXISTS) return reuseLink(ctx, client, session)
    if (failure.kind === 'refused') await abandonSession(ctx, session)
    throw providerError(payosApi, thrown)
  }
}

/** The link of an earlier try whose answer was lost; null if another order has our code. */
async function reuseLink(ctx: Context, client: PayOS, session: ProviderSession): Promise<OpenedSession | null> {
  const link = await findLink(ctx, client, session)
  if (!link || !isOurLink(link, session) || link.status === EXPIRED || CANCELLED.has(link.status)) return null
  return { reference: String(link.orderCode), url: paymentPageOf(link) }
}
