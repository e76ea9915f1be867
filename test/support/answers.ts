import type {
  CheckoutSession,
  Customer,
  ErrorBody,
  Event,
  ListedSubscription,
  Plan,
  Promotion,
  Subscription,
  Transaction,
} from '../../client/src/types.ts'
import type { TestClock } from '../../client/src/paygate.ts'

/** What a GET of these paths returns in `data`. */
interface Collections {
  plans: { plans: Plan[] }
  promotions: Promotion[]
  customers: Customer[]
  subscriptions: ListedSubscription[]
  transactions: Transaction[]
  events: Event[]
  'test-clock': TestClock
}

/** What every other call returns, by the first part of its path. */
interface Things {
  plans: Plan
  promotions: Promotion
  customers: Customer
  'checkout-sessions': CheckoutSession
  subscriptions: Subscription
  transactions: Transaction
  events: Event
  'test-clock': TestClock
  /** A provider's notification. */
  webhooks: { status: string }
}

/** The path below `/api/v1/`, without its query. */
type Rest<Path> = Path extends `/api/v1/${infer After}` ? (After extends `${infer Name}?${string}` ? Name : After) : ''
type First<Path> = Rest<Path> extends `${infer Name}/${string}` ? Name : Rest<Path>

/** `data` of a call that reads or changes one thing; unknown for a path that is no literal. Each answer is checked at run time, by its route. */
export type Written<Path> = First<Path> extends keyof Things ? Things[First<Path>] : unknown
/** `data` of a GET. */
export type Read<Path> = Rest<Path> extends keyof Collections ? Collections[Rest<Path>] : Written<Path>
export type Called<Method, Path> = Method extends 'GET' ? Read<Path> : Written<Path>

/** `data` of a checkout's page: where the payer goes. */
export interface Redirect {
  readonly redirect_url: string
}

/** The answer to the relay, which has no envelope, or an error. */
export interface Relayed extends Envelope<never> {
  readonly status: 'processed' | 'duplicate' | 'ignored' | 'rejected'
  readonly reason?: string
}

/** The envelope of a success or of an error: a test reads the one that it expects, and fails where that is missing. */
export interface Envelope<Data> {
  readonly success: boolean
  readonly data: Data
  readonly next_cursor: string | null
  readonly error: ErrorBody['error']
}
