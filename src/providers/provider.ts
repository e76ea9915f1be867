import type { IncomingHttpHeaders } from 'node:http'
import type { App } from '#apps/store.ts'
import type { Config } from '#config.ts'
import type { Context } from '#context.ts'
import type { Queries } from '#db/queries.ts'
import type { Payment, Refund } from '#payments/store.ts'
import type { RefundAnswer } from '#transactions/refund-money.ts'
import type { Transaction } from '#transactions/store.ts'
import type { RealTime } from '#shared/time.ts'
import type { CredentialsSpec } from './credentials-spec.ts'
import type { ProviderSession } from './store.ts'

/** A payment that a checkout or a renewal link wants opened at a provider. */
export interface PaymentRequest {
  readonly app: App
  readonly transaction: Transaction
  /** What the payer reads at the provider: the plan's name or the plan code. */
  readonly title: string
  /** Where the provider sends the payer afterwards. */
  readonly returnUrl: string
  readonly cancelUrl: string
  /** Our own page of the checkout, and the one that shows how to transfer. */
  readonly checkoutUrl: string
  readonly bankPageUrl: string
  /** End of the checkout, in real time: providers know nothing of a sandbox app's clock. */
  readonly expiresAt: RealTime
  readonly customerEmail: string | null
  readonly locale: 'en' | 'vi'
}

/**
 * What the provider says of a session that we opened. `processing`: the payer has done all, and the money is on its way or will fail to
 * come. `asks`: what an open one still asks for, in the smallest unit.
 */
export type LookUp =
  | { readonly status: 'paid' }
  | { readonly status: 'processing' }
  | { readonly status: 'closed' }
  | { readonly status: 'open'; readonly asks: number }

/** What payers read of a payment method. */
export interface MethodTexts {
  readonly name: string
  readonly hint: string
  /** On the button of the only payment method. */
  readonly pay: string
}

/** The endpoint at which a provider reports payments. */
export interface Notifications {
  /** `/api/v1/webhooks/…` */
  readonly path: string
  /**
   * Takes one notification and says what was decided. Throws `unverified` (400) for what is not genuine; what it throws besides is
   * our own failure, and the provider sends the notification again.
   */
  receive(ctx: Context, notification: { headers: IncomingHttpHeaders; body: Buffer }): Promise<Decision>
}

/** What became of a notification. */
export interface Decision<Status extends string = string> {
  /** In the answer to the provider. */
  readonly status: Status
  /** A transaction of which something that was opened may ask for more than is due now, and is then to be closed; null for none. */
  readonly toClose: number | null
}

export interface NoteRefundsOptions {
  readonly signal?: AbortSignal
  readonly appId?: number
}

/** What became of asking a provider for a refund; `unknown`: it may have been made or not. */
export type RefundCall =
  | RefundAnswer
  | {
      readonly status: 'unknown'
      /** Whether the provider answered, with a failure of its own: it repeats that under the same idempotency key. */
      readonly isAnswered: boolean
      /** For the operator. */
      readonly message: string
    }

/** How a provider gives money back. */
export interface ProviderRefunds {
  /** What an operator is shown: `refunds 9900 VND to the card`. */
  describe(money: string): string
  /** Makes the refund, once, however often it is asked for; `isRepeated`: an earlier call may have made it. Never inside a transaction. */
  make(ctx: Context, payment: Payment, refund: Refund, isRepeated: boolean): Promise<RefundCall>
  /** Asks for a refund whose reference is known. */
  lookUp(ctx: Context, payment: Payment, refund: Refund): Promise<RefundCall>
}

/** Sessions that stay open at a provider for a while: both calls go by the account that a session was opened under. */
export interface Sessions {
  /** The provider's. */
  readonly code: string
  /** Asks the provider, and confirms the payment where it was paid. Throws `provider_error`. */
  lookUp(ctx: Context, session: ProviderSession): Promise<LookUp>
  /** Makes the session unpayable. Throws `provider_error`, also where it was paid meanwhile. */
  close(ctx: Context, session: ProviderSession): Promise<void>
}

/**
 * One payment method. A new one is a folder here and a line in `providers.ts`: nothing else names it (`test/architecture.test.ts`). What a
 * provider lacks, such as credentials or refunds, is absent.
 */
export interface Provider<Method extends string = string> extends Partial<Sessions> {
  /** What a payer chooses and an app enables (contract 3). */
  readonly method: Method
  /** What sessions, payments and events are stored under, and the API's `provider_code`. */
  readonly code: string
  readonly texts: Readonly<Record<'en' | 'vi', MethodTexts>>
  /** Moves no money. */
  readonly isSandboxOnly?: true
  /** Whether `open` completes the payment: the choice is not recorded first. */
  readonly paysAtOnce?: true
  /** Reports bank transfers, so that apps that have it may take manual ones besides (contract 4, Manual bank transfer). */
  readonly reportsTransfers?: true
  /** Is paid on our own bank page, and confirmed by bank mails. */
  readonly hasBankPage?: true
  readonly credentials?: CredentialsSpec
  readonly notifications?: Notifications
  /** What a page's policy must allow for its form to lead to the provider's pages. */
  redirectSources?(config: Config): string[]
  /** Whether amount (smallest unit) and currency can be taken. Pure. */
  accepts(amount: number, currency: string): boolean
  /**
   * What an app needs besides having the method enabled; absent where nothing more is needed. `enabled` are the providers that the app
   * has enabled.
   */
  isReady?(db: Queries, app: App, enabled: readonly Provider[]): Promise<boolean>
  /**
   * Opens the payment and returns where to send the payer. May call the provider; never inside a transaction.
   * Throws `provider_error` (502) when the provider cannot be reached or refuses: the payer can try again.
   */
  open(ctx: Context, request: PaymentRequest): Promise<{ redirectUrl: string }>
  /** Absent where money is given back by a transfer that somebody makes. */
  readonly refunds?: ProviderRefunds
  /** Lists refunds that were made at the provider, and notes those that are new; returns how many. */
  noteRefunds?(ctx: Context, options: NoteRefundsOptions): Promise<number>
}

/** Keeps the method's name as a type. */
export function defineProvider<const Method extends string>(provider: Provider<Method>): Provider<Method> {
  return provider
}
