import type { ParameterizedContext } from 'koa'
import type { PageState } from '#http/html.ts'
import type { PartPaid } from './received.ts'
import type { TransferFacts } from './transfer-facts.ts'

/** The link that a payer opened. A route sets it with the owner of its page, so that an error page says what happens to the payment. */
export interface PayerLink {
  /** Where to start again after an error: `/checkout/…` or `/renew/…`. */
  readonly path: string
  /** Where the payer came from; only http(s) addresses become links. */
  readonly exit?: string
  /** Whether money may still be on its way by bank transfer, so that the page says what happens to it. */
  readonly takesTransfers?: boolean
  /** Whether the subscription has changed since the link was made, so that the link can no longer be paid. */
  readonly isOvertaken?: boolean
  /** Whether a payment by the link would not be applied any more: an operator decides about money that still comes. */
  readonly isRefused?: boolean
  /** Whether the payment is being processed, so that the payer must not pay again (R217). */
  readonly isProcessing?: boolean
  /** The part of the money that has arrived; absent if none or all of it has. */
  readonly part?: PartPaid
  /** How to transfer the rest of that; null if it cannot be transferred. */
  readonly restTransfer?: TransferFacts | null
}

export interface PayerState extends PageState {
  link?: PayerLink
}

/** Request and answer of a page behind a payer's link. */
export type PayerHttp = ParameterizedContext<PayerState>
