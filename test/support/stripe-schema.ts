import { Ajv } from 'ajv'
import type Stripe from 'stripe'

type Schema = Readonly<Record<string, unknown>>
type Params = Stripe.Checkout.SessionCreateParams
type LineItem = NonNullable<Params['line_items']>[number]
type PriceData = NonNullable<LineItem['price_data']>

const text = (maxLength: number): Schema => ({ type: 'string', minLength: 1, maxLength })
const address: Schema = { type: 'string', maxLength: 5000, pattern: '^https?://' }
const metadata: Schema = {
  type: 'object',
  maxProperties: 50,
  propertyNames: { maxLength: 40 },
  additionalProperties: { type: 'string', maxLength: 500 },
}
const closed = (properties: Readonly<Record<string, Schema>>, required: readonly string[]): Schema => ({
  type: 'object',
  additionalProperties: false,
  properties,
  required,
})

/**
 * The parameters of a Checkout Session in payment mode, as sent. `satisfies` checks each name against the SDK's own type, so that
 * the schema has no field that Stripe does not.
 */
const SESSION: Schema = closed(
  {
    mode: { const: 'payment' },
    submit_type: { enum: ['auto', 'book', 'donate', 'pay', 'subscribe'] },
    client_reference_id: text(200),
    line_items: {
      type: 'array',
      minItems: 1,
      maxItems: 100,
      items: closed(
        {
          quantity: { type: 'integer', minimum: 1 },
          price_data: closed(
            {
              currency: { type: 'string', pattern: '^[a-z]{3}$' },
              unit_amount: { type: 'integer', minimum: 0 },
              product_data: closed(
                { name: text(250), description: text(5000) } satisfies Partial<
                  Record<keyof NonNullable<PriceData['product_data']>, Schema>
                >,
                ['name'],
              ),
            } satisfies Partial<Record<keyof PriceData, Schema>>,
            ['currency', 'unit_amount', 'product_data'],
          ),
        } satisfies Partial<Record<keyof LineItem, Schema>>,
        ['quantity', 'price_data'],
      ),
    },
    adaptive_pricing: closed(
      { enabled: { type: 'boolean' } } satisfies Record<keyof NonNullable<Params['adaptive_pricing']>, Schema>,
      [],
    ),
    metadata,
    payment_intent_data: closed(
      { metadata, description: text(1000) } satisfies Partial<
        Record<keyof NonNullable<Params['payment_intent_data']>, Schema>
      >,
      [],
    ),
    success_url: address,
    cancel_url: address,
    expires_at: { type: 'integer' },
    locale: { enum: ['auto', 'en', 'vi'] },
    customer_email: { type: 'string', maxLength: 800, pattern: '^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$' },
  } satisfies Partial<Record<keyof Params, Schema>>,
  ['mode', 'line_items', 'success_url'],
)

/** What the schema lets through, as far as the peer and its tests read it. */
export interface SessionForm {
  readonly line_items: readonly [
    { readonly quantity: number; readonly price_data: { readonly currency: string; readonly unit_amount: number } },
  ]
  readonly locale?: string
  readonly client_reference_id?: string
  readonly customer_email?: string
  readonly expires_at?: number
  readonly metadata?: Record<string, string>
  readonly payment_intent_data?: { readonly metadata?: Record<string, string> }
}

interface RefundForm {
  readonly payment_intent: string
  readonly amount?: number
  readonly metadata?: Record<string, string>
}

/** The query of a call that reads. */
export interface ReadForm {
  readonly expand?: readonly string[]
  readonly payment_intent?: string
  readonly charge?: string
  readonly created?: { readonly gte?: string }
  readonly starting_after?: string
  readonly limit?: string
}

const REFUND: Schema = closed(
  {
    payment_intent: text(191),
    amount: { type: 'integer', minimum: 1 },
    metadata,
    reason: { enum: ['duplicate', 'fraudulent', 'requested_by_customer'] },
  } satisfies Partial<Record<keyof Stripe.RefundCreateParams, Schema>>,
  ['payment_intent'],
)

// Everything in a form is text, so numbers and booleans are coerced, and refused where that fails.
const ajv = new Ajv({ coerceTypes: true, allErrors: false, strict: true })
const validators = { session: ajv.compile(SESSION), refund: ajv.compile(REFUND) }

interface Forms {
  readonly session: SessionForm
  readonly refund: RefundForm
}

/** The form of decoded parameters, whose texts are coerced in place, or their first error with the parameter's path. */
export function readForm<Kind extends keyof Forms>(
  kind: Kind,
  params: unknown,
): { readonly form: Forms[Kind] } | { readonly error: { readonly param: string; readonly message: string } } {
  const validate = validators[kind]
  if (validate(params)) return { form: params as Forms[Kind] }
  const error = validate.errors![0]!
  const inner = error.params as { additionalProperty?: string; missingProperty?: string }
  const path = [...error.instancePath.split('/').slice(1), inner.additionalProperty ?? inner.missingProperty ?? '']
  return { error: { param: path.filter((part) => part !== '').join('.'), message: error.message ?? 'is wrong' } }
}
