import { appNow } from '#apps/app-time.ts'
import { readerOf } from '#apps/page-settings.ts'
import type { App } from '#apps/store.ts'
import { findTransferDetails, type TransferDetails } from '#bank-accounts/transfer-details.ts'
import { findSessionOfTransaction } from '#checkout/store.ts'
import { checkoutUrl, viewCheckout } from '#checkout/view-checkout.ts'
import type { Context } from '#context.ts'
import { mailNameOf } from '#customers/mail-name.ts'
import { findCustomer } from '#customers/store.ts'
import type { Mail } from '#mail/mail.ts'
import { dueOf } from '#payments/balance.ts'
import { listRefundsOfTransaction } from '#payments/store.ts'
import { findPlan } from '#plans/store.ts'
import { formatMoney } from '#shared/money.ts'
import { findLineOfTransaction, findSubscriptionOfEndUser } from '#subscriptions/store.ts'
import { referenceOf } from '#transactions/reference.ts'
import { getTransaction, type Transaction } from '#transactions/store.ts'
import type { Receipt } from '#transactions/receipts/store.ts'
import { composeMail } from '#mails/compose-mail.ts'
import { Stopped } from '#mails/mail-queue.ts'
import { dayWords, discountFact, paidForWords } from '#mails/words.ts'

/** The mail of a receipt. Throws `Stopped` while a refund is pending, and if there is no customer or the receipt is out of date. */
export async function composeReceipt(ctx: Context, app: App, receipt: Receipt): Promise<Mail> {
  const { kind, transactionId } = receipt
  const transaction = await getTransaction(ctx.db, transactionId)
  if (!app.pageSettings?.receipts) throw new Stopped('permanently')
  if (kind === 'part' && (transaction.status !== 'pending' || transaction.amountReceived !== receipt.total))
    throw new Stopped('permanently')
  const amount = kind === 'refunded' ? await amountRefunded(ctx, receipt) : receipt.amount
  if (amount === 'pending') throw new Stopped('later')
  if (amount === 0) throw new Stopped('permanently')
  const subscription =
    transaction.mode === 'subscription' ? await findSubscriptionOfEndUser(ctx.db, transaction.endUserId) : null
  const customerId = transaction.customerId ?? subscription?.customerId ?? null
  const customer = customerId === null ? null : await findCustomer(ctx.db, app.id, customerId)
  if (!customer) throw new Stopped('permanently')
  const line = kind === 'received' ? await findLineOfTransaction(ctx.db, transactionId) : null
  const planId = line?.planId ?? transaction.planId
  const plan = planId === null ? null : await findPlan(ctx.db, app.id, planId)
  const { locale } = customer
  // The client may have chosen the plan name, so mails to unverified addresses omit it.
  const planName = mailNameOf(customer) === '' ? null : transaction.planName
  const reader = readerOf(app, locale)
  const money = (amount: number): string => formatMoney(amount, transaction.currency, locale)
  const { transfer, payUrl } = kind === 'part' ? await paymentOptionsFor(ctx, transaction) : NO_PAYMENT_OPTIONS
  const title = plan?.name ?? planName ?? transaction.planRef
  const values = {
    kind,
    title,
    paid_for: paidForWords(title, plan !== null, locale),
    amount: money(amount),
    discount: kind === 'received' ? discountFact(transaction, locale) : '',
    asked: money(transaction.amount),
    missing: kind === 'part' ? money(dueOf(transaction)) : '',
    pay_url: payUrl,
    code: transfer?.transferCode ?? '',
    account_number: transfer?.accountNumber ?? '',
    bank_name: transfer?.bankName ?? '',
    account_holder: transfer?.accountHolder ?? '',
    until: line?.endAfter ? dayWords(line.endAfter, reader) : '',
    is_lifetime: line !== null && line.endAfter === null,
    date: dayWords(appNow(app, receipt.createdAt), reader),
    reference: referenceOf(transaction),
  }
  return composeMail(ctx.config, app, customer, { template: 'receipt', values, id: `receipt.${receipt.id}` })
}

/** How the rest of a part can be paid. `transfer` null: not by bank transfer; `payUrl` empty: no page takes it. */
interface PaymentOptions {
  readonly transfer: TransferDetails | null
  readonly payUrl: string
}

const NO_PAYMENT_OPTIONS: PaymentOptions = { transfer: null, payUrl: '' }

/** The bank page if transfers are taken, even after the link expired; otherwise the checkout while it is open. */
async function paymentOptionsFor(ctx: Context, transaction: Transaction): Promise<PaymentOptions> {
  const session = await findSessionOfTransaction(ctx.db, transaction.id)
  if (!session) return NO_PAYMENT_OPTIONS
  const { state, preview, takesRest } = await viewCheckout(ctx, session.token)
  const isOpen = state === 'open' && preview?.kind !== 'refused'
  if (!isOpen && !takesRest) return NO_PAYMENT_OPTIONS
  const url = checkoutUrl(ctx.config.baseUrl, session.token)
  const transfer = transaction.bankPageOpenedAt ? await findTransferDetails(ctx, transaction) : null
  if (transfer) return { transfer, payUrl: `${url}/bank` }
  return isOpen ? { transfer, payUrl: url } : NO_PAYMENT_OPTIONS
}

/** How much of a decision's refunds went back; `pending` while one of them may still fail. */
async function amountRefunded(ctx: Context, { transactionId, amount, total }: Receipt): Promise<number | 'pending'> {
  let sum = 0
  let succeeded = 0
  for (const { taken, status } of await listRefundsOfTransaction(ctx.db, transactionId)) {
    sum += taken
    // `total` counts all refunds ordered until then, so this decision's are those between `total - amount` and `total`.
    if (sum <= total - amount || sum > total) continue
    if (status === 'pending') return 'pending'
    if (status === 'succeeded') succeeded += taken
  }
  return succeeded
}
