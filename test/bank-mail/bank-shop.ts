import { getApp } from '#apps/store.ts'
import { chooseMethod } from '#checkout/choose-method.ts'
import { openBankPage } from '#checkout/open-bank-page.ts'
import type { Context } from '#context.ts'
import type { BankAccount } from '#bank-accounts/store.ts'
import { hmacHex } from '#shared/crypto.ts'
import { unixSeconds } from '#shared/time.ts'
import { findTransaction, type Transaction } from '#transactions/store.ts'
import { addBankAccount, assignBankAccount, enableMethod } from '../support/operators.ts'
import { startService, type Response, type TestService } from '../support/api.ts'
import { FORWARDER, MAILBOX, OUR_MX, SEALER, TRANSFER, type Transfer } from '../support/bank-mails.ts'
import { aCheckout, anApp, tokenOf, type TestApp } from '../support/factories.ts'
import type { Relayed } from '../support/answers.ts'

export const PAYOS_KEYS = { clientId: 'client', apiKey: 'key', checksumKey: 'checksum' } as const
export const RELAY_SECRET = 'relay-secret-for-tests'

/** The service's settings about mail servers. */
export const RELAY_SETTINGS = {
  BILLING_RELAY_SECRET: RELAY_SECRET,
  BILLING_RELAY_AUTHSERV_IDS: OUR_MX,
  BILLING_RELAY_TRUSTED_FORWARDERS: FORWARDER,
  BILLING_RELAY_TRUSTED_ARC_SEALERS: SEALER,
  BILLING_RELAY_ADDRESS: 'bank+{code}@pay.example',
}

/** A service with an app that takes bank transfers on an account. */
export interface BankShop {
  readonly service: TestService
  readonly app: TestApp
  readonly account: BankAccount
  /** A payment whose bank page was opened. */
  pay(options?: PaymentOptions): Promise<Transaction>
  /** Posts a mail as the relay does, by default to the account's address. */
  relay(mail: string, envelopeTo?: string): Promise<Response<Relayed>>
  transaction(id: number): Promise<Transaction>
}

export interface PaymentOptions {
  readonly amount?: number
  readonly externalRef?: string
  /** Leaves the bank page closed. */
  readonly closed?: boolean
}

let movements = 840_000_000

/** A transfer that pays the payment, as a movement that no other mail of these tests names. */
export function transferFor(payment: Transaction, changes: Partial<Transfer> = {}): Transfer {
  movements += 1
  return { ...TRANSFER, content: payment.transferCode!, movement: movements, ...changes }
}

/** By default the account has a mailbox if its bank's mails do not name the account. */
export async function aBankShop(
  bank = 'ACB',
  settings: Readonly<Record<string, string>> = {},
  options: { readonly mailbox?: string | undefined } = bank === 'TIMO' ? { mailbox: MAILBOX } : {},
): Promise<BankShop> {
  const service = await startService({ ...RELAY_SETTINGS, ...settings })
  const { ctx } = service
  const app = await aTransferApp(ctx)
  const account = await addBankAccount(ctx, 'tester', {
    bank,
    number: TRANSFER.account,
    holder: 'NGUYEN VAN A',
    ...options,
  })
  await assignBankAccount(ctx, 'tester', app.app, account.id)
  return {
    service,
    app,
    account,
    pay: (options) => aPayment(ctx, app, options),
    relay: (mail, envelopeTo = `bank+${account.forwardCode}@pay.example`) => relayMail(service, mail, envelopeTo),
    transaction: async (id) => (await findTransaction(ctx.db, id))!,
  }
}

/** An app with PayOS and bank transfer, and no account yet. */
export async function aTransferApp(ctx: Context): Promise<TestApp> {
  const app = await anApp(ctx, { methods: ['test', 'bank_transfer'] })
  await enableMethod(ctx, 'tester', app.app, 'payos', PAYOS_KEYS)
  return { ...app, app: await getApp(ctx.db, app.app.id) }
}

/** A one-time payment by bank transfer. */
export async function aPayment(ctx: Context, app: TestApp, options: PaymentOptions = {}): Promise<Transaction> {
  const { amount = TRANSFER.amount, externalRef = 'user-1', closed = false } = options
  const checkout = await aCheckout(
    ctx,
    { ...app, app: await getApp(ctx.db, app.app.id) },
    {
      mode: 'payment',
      plan_ref: 'book',
      external_ref: externalRef,
      amount,
      currency: 'VND',
    },
  )
  await chooseMethod(ctx, tokenOf(checkout), 'bank_transfer')
  if (!closed) await openBankPage(ctx, tokenOf(checkout))
  return (await findTransaction(ctx.db, checkout.transaction_id!))!
}

/** Posts a mail as the relay does. `signature` and `timestamp` are valid by default. */
export async function relayMail(
  service: TestService,
  mail: string,
  envelopeTo: string,
  changes: { readonly timestamp?: string; readonly signature?: string; readonly body?: string } = {},
): Promise<Response<Relayed>> {
  const body = changes.body ?? JSON.stringify({ envelope_to: envelopeTo, raw: Buffer.from(mail).toString('base64') })
  const timestamp = changes.timestamp ?? String(unixSeconds(service.ctx.clock.now()))
  return service.call<Relayed>('POST', '/api/v1/webhooks/bank-transfer', {
    raw: body,
    headers: {
      'Content-Type': 'application/json',
      'X-Timestamp': timestamp,
      'X-Signature': changes.signature ?? hmacHex(RELAY_SECRET, `${timestamp}.${body}`),
    },
  })
}
