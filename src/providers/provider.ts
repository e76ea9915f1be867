import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import type { Transaction } from '#transactions/store.ts'
import type { RealTime } from '#shared/time.ts'
import type { ProviderSession } from './store.ts'

/** What a payer can choose (contract 3). */
export const METHODS = ['card', 'payos', 'bank_transfer', 'test'] as const
export type Method = (typeof METHODS)[number]

/** A payment that a checkout or a renewal link wants opened at a provider. */
export interface PaymentRequest {
  readonly app: App
  readonly transaction: Transaction
  /** What the payer reads at the provider: the plan's name or the plan code. */
  readonly title: string
  /** Where the provider sends the payer afterwards. */
  readonly returnUrl: string
  readonly cancelUrl: string
  /** The hosted page that tells how to transfer. */
  readonly bankPageUrl: string
  /** End of the checkout, in real time: providers know nothing of a sandbox app's clock. */
  readonly expiresAt: RealTime
  readonly customerEmail: string | null
  readonly locale: 'en' | 'vi'
}

/** What the provider says of a session that we opened. */
export type LookUp = 'paid' | 'open' | 'closed'

/** One way to pay. A new one is a file in this folder and a line in `providers.ts`. */
export interface Provider {
  readonly method: Method
  /** Whether amount (smallest unit) and currency can be taken. Pure. */
  accepts(amount: number, currency: string): boolean
  /**
   * What an app needs besides having the method enabled; absent where nothing more is needed. Bank transfer: PayOS enabled too, and an
   * account assigned that is not disabled. `enabled` are the methods that the app has enabled.
   */
  isReady?(ctx: Context, app: App, enabled: ReadonlySet<string>): Promise<boolean>
  /**
   * Opens the payment and tells where to send the payer. May call the provider; never inside a transaction.
   * Throws `provider_error` (502) when the provider cannot be reached or refuses: the payer can try again.
   */
  open(ctx: Context, request: PaymentRequest): Promise<{ redirectUrl: string }>
  /** Asks the provider, and confirms the payment where it was paid. */
  lookUp?(ctx: Context, app: App, session: ProviderSession): Promise<LookUp>
  /** Makes a session unpayable whose transaction was completed in another way. Best effort. */
  close?(ctx: Context, app: App, session: ProviderSession): Promise<void>
}
