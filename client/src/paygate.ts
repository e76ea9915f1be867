import { List, type Page } from './list.ts'
import { send, type Call, type CallOptions, type TransportOptions } from './transport.ts'
import type {
  AddPriceInput,
  AdvanceTestClockInput,
  AttachCustomerInput,
  CheckoutSession,
  CreateCheckoutSessionInput,
  CreateCustomerInput,
  CreatePlanInput,
  Customer,
  Event,
  Plan,
  Subscription,
  SwitchPlanInput,
  Transaction,
  UpdateCustomerInput,
  UpdatePlanInput,
  UpdatePriceInput,
} from './types.ts'
import { verifyWebhook } from './webhooks.ts'

export interface PaygateOptions {
  /** Where the service is: `https://billing.example.com`. */
  readonly baseUrl: string
  readonly apiKey: string
  /** Keep it on servers. */
  readonly apiSecret: string
  /** How long one attempt may take; 30,000 by default. */
  readonly timeoutMs?: number
  /** How often a call is tried again; 2 by default. */
  readonly maxRetries?: number
  /** In place of the runtime's own. */
  readonly fetch?: typeof fetch
}

/** Where a list begins, and how much of it a page holds. */
export interface ListFilter {
  /** 1 to 100; 20 by default. */
  readonly limit?: number
  /** The `next_cursor` of another page. */
  readonly cursor?: string
}

/** The time of a sandbox app, and reminders that another daemon is still sending. */
export interface TestClock {
  readonly now: string
  readonly pending?: readonly {
    readonly external_ref: string
    readonly reminder_day: 3 | 1 | 0
    readonly claimed_at: string
  }[]
}

/** The API, for a seller's server. Every call throws `ApiError` where the service refuses, `ConnectionError` where no answer comes. */
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
    this.#options = { baseUrl, apiKey, apiSecret, timeoutMs, maxRetries, fetch }
  }

  readonly plans = {
    /** Publishes a plan with its first prices. */
    create: (input: CreatePlanInput, options?: CallOptions) => this.#post<Plan>('/plans', input, options),
    get: (id: string, options?: CallOptions) => this.#get<Plan>(`/plans/${encodeURIComponent(id)}`, options),
    update: (id: string, input: UpdatePlanInput, options?: CallOptions) =>
      this.#patch<Plan>(`/plans/${encodeURIComponent(id)}`, input, options),
    /** All plans, newest first. */
    list: async (filter: { readonly status?: 'active' | 'archived' } = {}, options?: CallOptions): Promise<Plan[]> => {
      const { plans } = await this.#data<{ plans: Plan[] }>({
        method: 'GET',
        path: '/plans',
        query: { ...filter },
        ...options,
      })
      return plans
    },
  }

  readonly prices = {
    /** Puts one more price on sale. Answers the plan with all its prices. */
    create: (planId: string, input: AddPriceInput, options?: CallOptions) =>
      this.#post<Plan>(`/plans/${encodeURIComponent(planId)}/prices`, input, options),
    /** Renames, archives or restores a price. Answers the plan with all its prices. */
    update: (planId: string, priceId: string, input: UpdatePriceInput, options?: CallOptions) =>
      this.#patch<Plan>(`/plans/${encodeURIComponent(planId)}/prices/${encodeURIComponent(priceId)}`, input, options),
  }

  readonly customers = {
    create: (input: CreateCustomerInput, options?: CallOptions) => this.#post<Customer>('/customers', input, options),
    get: (id: string, options?: CallOptions) => this.#get<Customer>(`/customers/${encodeURIComponent(id)}`, options),
    update: (id: string, input: UpdateCustomerInput, options?: CallOptions) =>
      this.#patch<Customer>(`/customers/${encodeURIComponent(id)}`, input, options),
    list: (
      filter: ListFilter & { readonly merchant_customer_id?: string; readonly email?: string } = {},
      options?: CallOptions,
    ) => this.#list<Customer>('/customers', { ...filter }, options),
  }

  readonly checkoutSessions = {
    /** Opens a checkout: send the payer to `checkout_url`. */
    create: (input: CreateCheckoutSessionInput, options?: CallOptions) =>
      this.#post<CheckoutSession>('/checkout-sessions', input, options),
  }

  readonly subscriptions = {
    /** Who has access, and until when. Throws `not_found` where the end user never had a subscription. */
    get: (externalRef: string, options?: CallOptions) =>
      this.#get<Subscription>(`/subscriptions/${encodeURIComponent(externalRef)}`, options),
    /** The next renewal costs the new price. */
    switchPlan: (externalRef: string, input: SwitchPlanInput, options?: CallOptions) =>
      this.#put<Subscription>(`/subscriptions/${encodeURIComponent(externalRef)}/plan`, input, options),
    /** Reminders go to this customer from then on. */
    attachCustomer: (externalRef: string, input: AttachCustomerInput, options?: CallOptions) =>
      this.#put<Subscription>(`/subscriptions/${encodeURIComponent(externalRef)}/customer`, input, options),
  }

  readonly transactions = {
    get: (id: number, options?: CallOptions) => this.#get<Transaction>(`/transactions/${id}`, options),
    list: (
      filter: ListFilter & {
        readonly external_ref?: string
        readonly status?: Transaction['status']
        readonly flagged?: boolean
      } = {},
      options?: CallOptions,
    ) => this.#list<Transaction>('/transactions', { ...filter }, options),
  }

  readonly events = {
    get: (id: string, options?: CallOptions) => this.#get<Event>(`/events/${encodeURIComponent(id)}`, options),
    /** Read it to catch up after your receiver was away. */
    list: (filter: ListFilter = {}, options?: CallOptions) => this.#list<Event>('/events', { ...filter }, options),
  }

  /** The own time of a sandbox app. */
  readonly testClock = {
    get: (options?: CallOptions) => this.#get<TestClock>('/test-clock', options),
    /** Moves it forward and runs reminders and expiry to the end. */
    advance: (input: AdvanceTestClockInput, options?: CallOptions) =>
      this.#post<TestClock>('/test-clock', input, options),
  }

  readonly webhooks = { verify: verifyWebhook }

  #get<Data>(path: string, options?: CallOptions): Promise<Data> {
    return this.#data({ method: 'GET', path, ...options })
  }

  #post<Data>(path: string, body: unknown, options?: CallOptions): Promise<Data> {
    return this.#data({ method: 'POST', path, body, ...options })
  }

  #put<Data>(path: string, body: unknown, options?: CallOptions): Promise<Data> {
    return this.#data({ method: 'PUT', path, body, ...options })
  }

  #patch<Data>(path: string, body: unknown, options?: CallOptions): Promise<Data> {
    return this.#data({ method: 'PATCH', path, body, ...options })
  }

  /** The type is the service's promise, which its own tests hold. */
  async #data<Data>(call: Call): Promise<Data> {
    const { data } = await send(this.#options, call)
    return data as Data
  }

  #list<Item>(
    path: string,
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
