import { appNow } from '#apps/app-time.ts'
import { readerOf } from '#apps/page-settings.ts'
import type { App } from '#apps/store.ts'
import { findTransferDetails } from '#bank-accounts/transfer-details.ts'
import { findSessionOfTransaction } from '#checkout/store.ts'
import { checkoutUrl, viewCheckout } from '#checkout/view-checkout.ts'
import type { Context } from '#context.ts'
import { mailNameOf } from '#customers/mail-name.ts'
import { findCustomer, type Customer } from '#customers/store.ts'
import type { Mail } from '#mail/mail.ts'
import type { MailValues } from '#mail/render.ts'
import { dueOf } from '#payments/balance.ts'
import { listRefundsOfTransaction } from '#payments/store.ts'
import { findPlan } from '#plans/store.ts'
import type { Locale } from '#shared/locale.ts'
import { formatMoney } from '#shared/money.ts'
import { findLineOfTransaction, findSubscriptionOfEndUser } from '#subscriptions/store.ts'
import { referenceOf } from '#transactions/reference.ts'
import { getTransaction, type Transaction } from '#transactions/store.ts'
import type { Receipt } from '#transactions/receipts/store.ts'
import { composeMail } from '#mails/compose-mail.ts'
import { Stopped } from '#mails/mail-queue.ts'
import { dayWords } from '#words/dates.ts'
import { discountFact } from '#words/discounts.ts'
import { paidForWords } from '#words/plans.ts'

/** The mail of a receipt. Throws `Stopped` while a refund is pending, and if there is no customer or the receipt is out of date. */
export async function composeReceipt(ctx: Context, app: App, receipt: Receipt): Promise<Mail> {
  if (!app.pageSettings?.receipts) throw noReason()
  const transaction = await getTransaction(ctx.db, receipt.transactionId)
  const amount = await amountOf(ctx, transaction, receipt)
  const customer = await customerOf(ctx, transaction)
  const values = {
    kind: receipt.kind,
    ...moneyOf(transaction, receipt, amount, customer.locale),
    ...(await subjectOf(ctx, app, transaction, receipt, customer)),
    ...(await paymentOptionsFor(ctx, transaction, receipt)),
    date: dayWords(appNow(app, receipt.createdAt), readerOf(app, customer.locale)),
    reference: referenceOf(transaction),
  }
  return composeMail(ctx.config, app, customer, { template: 'receipt', values, id: `receipt.${receipt.id}` })
}

/** The amount that the receipt reports, in the smallest unit; throws `Stopped` if there is none, or none yet. */
async function amountOf(ctx: Context, transaction: Transaction, receipt: Receipt): Promise<number> {
  const { kind, total } = receipt
  if (kind === 'part' && (transaction.status !== 'pending' || transaction.amountReceived !== total)) throw noReason()
  const amount = kind === 'refunded' ? await amountRefunded(ctx, receipt) : receipt.amount
  if (amount === 0) throw noReason()
  return amount
}

/** Stops a receipt that reports nothing any more. */
function noReason(): Stopped {
  return new Stopped({ isFinal: true })
}

/** The customer of the transaction, else of the subscription; throws `Stopped` if there is none. */
async function customerOf(ctx: Context, { appId, mode, endUserId, customerId }: Transaction): Promise<Customer> {
  const subscription = mode === 'subscription' ? await findSubscriptionOfEndUser(ctx.db, endUserId) : null
  const knownId = customerId ?? subscription?.customerId ?? null
  const customer = knownId === null ? null : await findCustomer(ctx.db, appId, knownId)
  if (!customer) throw noReason()
  return customer
}

function moneyOf(transaction: Transaction, { kind }: Receipt, amount: number, locale: Locale): MailValues {
  const money = (value: number): string => formatMoney(value, transaction.currency, locale)
  return {
    amount: money(amount),
    discount: kind === 'received' ? discountFact(transaction, locale) : '',
    asked: money(transaction.amount),
    missing: kind === 'part' ? money(dueOf(transaction)) : '',
  }
}

/** What was paid for, and until when the payment gives it. */
async function subjectOf(
  ctx: Context,
  app: App,
  transaction: Transaction,
  { kind }: Receipt,
  customer: Customer,
): Promise<MailValues> {
  const line = kind === 'received' ? await findLineOfTransaction(ctx.db, transaction.id) : null
  const planId = line?.planId ?? transaction.planId
  const plan = planId === null ? null : await findPlan(ctx.db, app.id, planId)
  const { locale } = customer
  // The client may have chosen the plan name, so mails to unverified addresses omit it.
  const planName = mailNameOf(customer) === '' ? null : transaction.planName
  const title = plan?.name ?? planName ?? transaction.planRef
  return {
    title,
    paid_for: paidForWords(title, plan !== null, locale),
    until: line?.endAfter ? dayWords(line.endAfter, readerOf(app, locale)) : '',
    is_lifetime: line !== null && line.endAfter === null,
  }
}

const NO_PAYMENT_OPTIONS = { pay_url: '', code: '', account_number: '', bank_name: '', account_holder: '' }

/**
 * How the rest of a part can be paid; what is not offered is empty. The bank page if transfers are taken, even after the link expired, with
 * the facts of a transfer; otherwise the checkout while it is open.
 */
async function paymentOptionsFor(ctx: Context, transaction: Transaction, { kind }: Receipt): Promise<MailValues> {
  const session = kind === 'part' ? await findSessionOfTransaction(ctx.db, transaction.id) : null
  if (!session) return NO_PAYMENT_OPTIONS
  const { state, preview, takesRest } = await viewCheckout(ctx, session.token)
  const isOpen = state === 'open' && preview?.kind !== 'refused'
  if (!isOpen && !takesRest) return NO_PAYMENT_OPTIONS
  const url = checkoutUrl(ctx.config.baseUrl, session.token)
  const transfer = transaction.bankPageOpenedAt ? await findTransferDetails(ctx, transaction) : null
  if (!transfer) return { ...NO_PAYMENT_OPTIONS, pay_url: isOpen ? url : '' }
  return {
    pay_url: `${url}/bank`,
    code: transfer.transferCode,
    account_number: transfer.accountNumber,
    bank_name: transfer.bankName,
    account_holder: transfer.accountHolder,
  }
}

/** How much of a decision's refunds went back, in the smallest unit; throws `Stopped` while one of them may still fail. */
async function amountRefunded(ctx: Context, { transactionId, amount, total }: Receipt): Promise<number> {
  let sum = 0
  let succeeded = 0
  for (const { taken, status } of await listRefundsOfTransaction(ctx.db, transactionId)) {
    sum += taken
    // `total` counts all refunds ordered until then, so this decision's are those between `total - amount` and `total`.
    if (sum <= total - amount || sum > total) continue
    if (status === 'pending') throw new Stopped({ isFinal: false })
    if (status === 'succeeded') succeeded += taken
  }
  return succeeded
}
