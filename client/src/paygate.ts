import { catchUp, follow, type CatchUpOptions, type FollowOptions, type ReadEvents } from './follow.ts'
import { List, WholeList, type Page } from './list.ts'
import { checkPathPart, rootOf, send, type Call, type CallOptions, type TransportOptions } from './transport.ts'
import type {
  AddPriceInput,
  AdvanceTestClockInput,
  AttachCustomerInput,
  CheckoutSession,
  CreateCheckoutSessionInput,
  CreateCustomerInput,
  CreatePlanInput,
  CreatePromotionInput,
  Customer,
  Event,
  Plan,
  Promotion,
  ListedSubscription,
  Subscription,
  SwitchPlanInput,
  Transaction,
  UpdateCustomerInput,
  UpdatePlanInput,
  UpdatePriceInput,
  UpdatePromotionInput,
} from './types.ts'
import { verifyWebhook } from './webhooks.ts'

export interface PaygateOptions {
  /** Where the service is: `https://billing.example.com`, with or without `/api/v1`. */
  readonly baseUrl: string
  readonly apiKey: string
  /** Keep it on servers. */
  readonly apiSecret: string
  /** How long one attempt may take; 30,000 by default. */
  readonly timeoutMs?: number
  /** How often a call is retried; 2 by default. */
  readonly maxRetries?: number
  /** Replaces the runtime's `fetch`. */
  readonly fetch?: typeof fetch
}

/** Pagination of a list. */
export interface ListFilter {
  /** 1 to 100; 20 by default. */
  readonly limit?: number
  /** The `next_cursor` of the previous page. */
  readonly cursor?: string
}

/** What a list of events may be narrowed to. */
export interface EventFilter extends ListFilter {
  readonly event_type?: string
  readonly external_ref?: string
  /** Only events with a later `created_at`. */
  readonly created_after?: string
  /** `desc` by default: the newest first. */
  readonly order?: 'asc' | 'desc'
}

/** A sandbox app's own time, and reminders that another daemon is still sending. */
export interface TestClock {
  readonly now: string
  readonly pending?: readonly {
    readonly external_ref: string
    readonly reminder_day: 3 | 1 | 0
    readonly claimed_at: string
  }[]
}

/**
 * The API, for a seller's server. The constructor throws `TypeError` for an option that is missing or wrong. Every call throws `ApiError` if the
 * service refuses it, and `ConnectionError` if no response comes.
 */
export class Paygate {
  readonly #options: TransportOptions

  constructor({
    baseUrl,
    apiKey,
    apiSecret,
    timeoutMs = 30_000,
    maxRetries = 2,
    fetch = globalThis.fetch,
  }: PaygateOptions) {
    checkKey('apiKey', apiKey, 'pk_')
    checkKey('apiSecret', apiSecret, 'sk_')
    this.#options = { baseUrl: rootOf(baseUrl), apiKey, apiSecret, timeoutMs, maxRetries, fetch }
  }

  readonly plans = {
    /** Creates a plan with its first prices. */
    create: (input: CreatePlanInput, options?: CallOptions) => this.#post<Plan>(['plans'], input, options),
    get: (id: string, options?: CallOptions) => this.#get<Plan>(['plans', id], options),
    update: (id: string, input: UpdatePlanInput, options?: CallOptions) =>
      this.#patch<Plan>(['plans', id], input, options),
    /** All plans, newest first. */
    list: (filter: { readonly status?: 'active' | 'archived' } = {}, options?: CallOptions): WholeList<Plan> =>
      new WholeList(async () => {
        const call = { method: 'GET', path: ['plans'], query: { ...filter }, ...options } as const
        return (await this.#data<{ plans: Plan[] }>(call)).plans
      }),
  }

  readonly prices = {
    /** Puts one more price on sale. Returns the plan with all its prices. */
    create: (planId: string, input: AddPriceInput, options?: CallOptions) =>
      this.#post<Plan>(['plans', planId, 'prices'], input, options),
    /** Renames, archives or restores a price. Returns the plan with all its prices. */
    update: (planId: string, priceId: string, input: UpdatePriceInput, options?: CallOptions) =>
      this.#patch<Plan>(['plans', planId, 'prices', priceId], input, options),
  }

  readonly promotions = {
    /** Creates a code that takes something off a payment. */
    create: (input: CreatePromotionInput, options?: CallOptions) =>
      this.#post<Promotion>(['promotions'], input, options),
    get: (id: string, options?: CallOptions) => this.#get<Promotion>(['promotions', id], options),
    /** Archives or restores it, or changes its end or how many may use it. */
    update: (id: string, input: UpdatePromotionInput, options?: CallOptions) =>
      this.#patch<Promotion>(['promotions', id], input, options),
    /** Newest first. */
    list: (filter: ListFilter = {}, options?: CallOptions) =>
      this.#list<Promotion>(['promotions'], { ...filter }, options),
  }

  readonly customers = {
    create: (input: CreateCustomerInput, options?: CallOptions) => this.#post<Customer>(['customers'], input, options),
    get: (id: string, options?: CallOptions) => this.#get<Customer>(['customers', id], options),
    update: (id: string, input: UpdateCustomerInput, options?: CallOptions) =>
      this.#patch<Customer>(['customers', id], input, options),
    list: (
      filter: ListFilter & { readonly merchant_customer_id?: string; readonly email?: string } = {},
      options?: CallOptions,
    ) => this.#list<Customer>(['customers'], { ...filter }, options),
  }

  readonly checkoutSessions = {
    /** Opens a checkout. Redirect the payer to its `checkout_url`. */
    create: async (input: CreateCheckoutSessionInput, options?: CallOptions): Promise<CheckoutSession> => {
      checkPathPart(input.external_ref)
      return this.#post(['checkout-sessions'], input, options)
    },
  }

  readonly subscriptions = {
    /** The end user's subscription. Throws `not_found` if the end user never had one. */
    get: (externalRef: string, options?: CallOptions) =>
      this.#get<Subscription>(['subscriptions', externalRef], options),
    /** Ordered by `external_ref`. */
    list: (
      filter: ListFilter & {
        readonly status?: Subscription['status']
        /** The plan's `code`. */
        readonly plan?: string
        readonly ends_after?: string
        readonly ends_before?: string
      } = {},
      options?: CallOptions,
    ) => this.#list<ListedSubscription>(['subscriptions'], { ...filter }, options),
    /** Moves the subscription to another price from the next renewal on. */
    switchPlan: (externalRef: string, input: SwitchPlanInput, options?: CallOptions) =>
      this.#put<Subscription>(['subscriptions', externalRef, 'plan'], input, options),
    /** Attaches the customer who gets the reminders. */
    attachCustomer: (externalRef: string, input: AttachCustomerInput, options?: CallOptions) =>
      this.#put<Subscription>(['subscriptions', externalRef, 'customer'], input, options),
  }

  readonly transactions = {
    get: (id: number, options?: CallOptions) => this.#get<Transaction>(['transactions', String(id)], options),
    list: (
      filter: ListFilter & {
        readonly external_ref?: string
        readonly status?: Transaction['status']
        readonly flagged?: boolean
      } = {},
      options?: CallOptions,
    ) => this.#list<Transaction>(['transactions'], { ...filter }, options),
  }

  readonly events = {
    get: (id: string, options?: CallOptions) => this.#get<Event>(['events', id], options),
    /** A page of events. To read all that happened, use `follow` or `catchUp`, which miss nothing. */
    list: (filter: EventFilter = {}, options?: CallOptions) => this.#list<Event>(['events'], { ...filter }, options),
    /**
     * Yields every event since `from`, each with the cursor to store once it is handled, and then goes on with new ones. At least once: skip
     * what you have handled by `event.id`. Without `from` it begins with what happens from now on.
     */
    follow: (options: FollowOptions = {}) => follow(this.#readEvents(options), options),
    /** Yields every event since `from`, as `follow` does, and ends when it has caught up. Without `from` it begins with the first event. */
    catchUp: (options: CatchUpOptions = {}) => catchUp(this.#readEvents(options), options),
  }

  /** A sandbox app's own time. */
  readonly testClock = {
    get: (options?: CallOptions) => this.#get<TestClock>(['test-clock'], options),
    /** Moves the clock forward, and returns when reminders and expiry are done. */
    advance: (input: AdvanceTestClockInput, options?: CallOptions) =>
      this.#post<TestClock>(['test-clock'], input, options),
  }

  readonly webhooks = { verify: verifyWebhook }

  #readEvents({ signal }: CatchUpOptions): ReadEvents {
    return (query) => this.#list<Event>(['events'], { ...query }, { signal })
  }

  #get<Data>(path: readonly string[], options?: CallOptions): Promise<Data> {
    return this.#data({ method: 'GET', path, ...options })
  }

  #post<Data>(path: readonly string[], body: unknown, options?: CallOptions): Promise<Data> {
    return this.#data({ method: 'POST', path, body, ...options })
  }

  #put<Data>(path: readonly string[], body: unknown, options?: CallOptions): Promise<Data> {
    return this.#data({ method: 'PUT', path, body, ...options })
  }

  #patch<Data>(path: readonly string[], body: unknown, options?: CallOptions): Promise<Data> {
    return this.#data({ method: 'PATCH', path, body, ...options })
  }

  /** The response is not validated: the service's own tests check its types. */
  async #data<Data>(call: Call): Promise<Data> {
    const { data } = await send(this.#options, call)
    return data as Data
  }

  #list<Item>(
    path: readonly string[],
    filter: Readonly<Record<string, string | number | boolean>>,
    options?: CallOptions,
  ): List<Item> {
    return new List<Item>(async (cursor): Promise<Page<Item>> => {
      const query = cursor === null ? filter : { ...filter, cursor }
      const { data, next_cursor = null } = await send(this.#options, { method: 'GET', path, query, ...options })
      return { data: data as Item[], next_cursor }
    })
  }
}

/** Throws `TypeError` for a key that no request can carry, without repeating it. */
function checkKey(name: 'apiKey' | 'apiSecret', key: unknown, prefix: string): void {
  if (typeof key !== 'string' || key === '') throw new TypeError(`${name} is missing: it is the ${prefix}… of your app`)
  const other = ['pk_', 'sk_', 'whsec_'].find((one) => one !== prefix && key.startsWith(one))
  if (other !== undefined) throw new TypeError(`${name} is the ${prefix}… of your app: the one given is a ${other}…`)
  if (!/^[\x21-\x7e]+$/.test(key)) throw new TypeError(`${name} holds blanks or characters that no key has`)
}
