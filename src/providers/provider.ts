/**
 * The terms of this folder.
 *
 * - A **method** is what a payer chooses and an app enables, such as `card`.
 * - A **provider** is the party that takes the money of a method. Its `code` is stored with sessions, payments and events. Each method
 *   has one provider, and `Provider` describes both.
 * - An **account version** is one set of an app's credentials at a provider. New credentials make a new version. What was opened under an
 *   earlier version continues with it.
 * - A **session** is one try to pay a transaction at a provider, such as a payment link, under one account version.
 * - The **intent** is the session's row in status `opening`. It is committed before the provider is called, so that a call whose answer
 *   is lost can be repeated.
 * - A **plug** is the folder of one method. It says how to open, poll and close a session, and how to read a notification.
 * - The **kit** is the files beside this one, from which plugs are built.
 * - The **engine** (`engine`) runs all plugs: it receives notifications, polls sessions, closes those that ask for too much, and sends
 *   refunds. No plug imports it.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { PayableApp } from '#apps/store.ts'
import type { Config } from '#config/config.ts'
import type { Context } from '#context.ts'
import type { Queries } from '#db/queries.ts'
import type { Payment, Refund } from '#payments/store.ts'
import type { Locale } from '#shared/locale.ts'
import type { RefundAnswer } from '#transactions/record-refund-answer.ts'
import type { PayableTransaction } from '#transactions/store.ts'
import type { RealTime } from '#shared/time.ts'
import type { CredentialsSpec } from './credentials-spec.ts'
import type { ProviderSession } from './store.ts'

/** A payment to open at a provider, for a checkout or a renewal link. */
export interface PaymentRequest {
  readonly app: PayableApp
  readonly transaction: PayableTransaction
  /** Shown to the payer at the provider: the plan's name or the plan code. */
  readonly title: string
  /** Where the provider sends the payer afterwards. */
  readonly returnUrl: string
  readonly cancelUrl: string
  /** Our page of the checkout. */
  readonly checkoutUrl: string
  /** Our page that shows how to transfer. */
  readonly bankPageUrl: string
  /** End of the checkout, in real time: providers do not follow a sandbox app's clock. */
  readonly expiresAt: RealTime
  readonly customerEmail: string | null
  readonly locale: Locale
}

/**
 * The status of a session at its provider. `processing`: the payer is done, and the money is on its way or will fail to arrive. `expired`:
 * it no longer takes payments, but money that was sent before may still arrive. `asks`: the amount that an open session still asks for, in
 * the smallest unit.
 */
export type PolledStatus =
  | { readonly status: 'paid' }
  | { readonly status: 'processing' }
  | { readonly status: 'expired' }
  | { readonly status: 'closed' }
  | { readonly status: 'open'; readonly asks: number }

/** A session that nobody can pay any more. */
export const CLOSED: PolledStatus = { status: 'closed' }

/** The texts of a payment method for payers. */
export interface MethodTexts {
  readonly name: string
  readonly hint: string
  /** The button if it is the only payment method. */
  readonly pay: string
}

/** The endpoint at which a provider reports payments. */
export interface Notifications {
  /** `/api/v1/webhooks/…` */
  readonly path: string
  /** The largest body; a longer one is not genuine. */
  readonly maxBytes: number
  /**
   * Takes one notification and returns the result. Throws `unverified` (400) for what is not genuine. Any other error is a failure on our
   * side, and the provider sends the notification again.
   */
  receive(ctx: Context, notification: { headers: IncomingHttpHeaders; body: Buffer }): Promise<NotificationResult>
}

/** The result of a notification. */
export interface NotificationResult<Status extends string = string> {
  /** The status in the answer to the provider. */
  readonly status: Status
  /** A transaction whose open sessions may ask for more than is due and must then be closed; null for none. */
  readonly toClose: number | null
}

export interface NoteRefundsOptions {
  readonly signal?: AbortSignal
  readonly appId?: number
}

/** The outcome of a call about a refund. `unknown`: the refund may or may not have been made. */
export type RefundCall =
  | RefundAnswer
  | {
      readonly status: 'unknown'
      /** Whether the provider answered with a failure of its own, which it repeats under the same idempotency key. */
      readonly isAnswered: boolean
      /** For the operator. */
      readonly message: string
    }

/** How a provider makes refunds. */
export interface ProviderRefunds {
  /** For the operator: `Stripe refunds ₫9,900 to the card`. */
  describe(money: string): string
  /** Makes the refund once, however often it is called. `isRepeated`: an earlier call may have made it. Never inside a transaction. */
  make(ctx: Context, payment: Payment, refund: Refund, options: { readonly isRepeated: boolean }): Promise<RefundCall>
  /** Asks for the status of a refund whose reference is known. */
  pollStatus(ctx: Context, payment: Payment, refund: Refund): Promise<RefundCall>
}

/** Codes that people copy into a transfer, and into a question about it. Pure. */
export interface PayerCodes {
  /** The codes in a text, in our own spelling. */
  findIn(text: string): string[]
  /** The codes that a text with one typo may mean. */
  near(text: string): string[]
}

/** A provider's sessions, which stay open for a while. Both calls use the account that a session was opened under. */
export interface Sessions {
  /** Asks the provider, and confirms the payment if it was paid. Throws `provider_error`. */
  pollStatus(ctx: Context, session: ProviderSession): Promise<PolledStatus>
  /** Makes the session unpayable. Throws `provider_error`, also if it was paid meanwhile. */
  close(ctx: Context, session: ProviderSession): Promise<void>
}

/**
 * One payment method: a folder here and a line in `providers.ts`. Nothing else names it (`test/architecture.test.ts`). What a provider
 * lacks, such as credentials or refunds, is absent. The terms stand at the top of this file.
 */
export interface Provider<Method extends string = string> {
  /** The name by which payers choose it and apps enable it. */
  readonly method: Method
  /** The code in stored sessions, payments and events: the API's `provider_code`. */
  readonly code: string
  readonly texts: Readonly<Record<Locale, MethodTexts>>
  /** Moves no money. */
  readonly isSandboxOnly?: true
  /** `open` completes the payment, so that the choice is not recorded first. */
  readonly paysAtOnce?: true
  /** Reports bank transfers: an app that has it may take manual ones as well (R191). */
  readonly reportsTransfers?: true
  /** Paid on our own bank page, and confirmed by bank mails. */
  readonly hasBankPage?: true
  /** Paid by scanning a code with a banking app. */
  readonly hasQrCode?: true
  /** How payers quote its transactions. */
  readonly codes?: PayerCodes
  /** The ids of the transactions that the text of a transfer may name, where that text is no code of ours. Pure. */
  transactionsIn?(text: string): readonly number[]
  readonly credentials?: CredentialsSpec
  readonly notifications?: Notifications
  /** Sources that a page's Content-Security-Policy must allow so that its form can redirect to the provider's pages. */
  redirectSources?(config: Config): string[]
  /** Whether amount (smallest unit) and currency can be taken. Pure. */
  accepts(amount: number, currency: string): boolean
  /**
   * Whether the app has what the method needs beyond being enabled; absent if nothing more is needed. `enabled` are the providers
   * that the app has enabled.
   */
  isReady?(db: Queries, app: PayableApp, enabled: readonly Provider[]): Promise<boolean>
  /**
   * Opens the payment and returns where to send the payer. May call the provider; never inside a transaction.
   * Throws `provider_error` (502) if the provider cannot be reached or refuses: the payer can try again.
   */
  open(ctx: Context, request: PaymentRequest): Promise<{ redirectUrl: string }>
  /** Absent if `open` opens no session. */
  readonly sessions?: Sessions
  /** Absent if operators refund manually, by transfer, or if no money moves. */
  readonly refunds?: ProviderRefunds
  /** Lists refunds that were made at the provider, and records those that are new; returns how many. */
  noteRefunds?(ctx: Context, options: NoteRefundsOptions): Promise<number>
}

/** Keeps the method's name as a literal type. */
export function defineProvider<const Method extends string>(provider: Provider<Method>): Provider<Method> {
  return provider
}
