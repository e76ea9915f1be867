import type { Config } from '#config/config.ts'
import { defineCredentials, type CredentialsCheck } from '#providers/credentials-spec.ts'
import { CardCredentials } from './accounts.ts'
import { stripeClient, stripeFailureOf } from './client.ts'

export const cardCredentials = defineCredentials({
  schema: CardCredentials,
  questions: [
    {
      field: 'secretKey',
      variable: 'BILLING_CLI_STRIPE_SECRET_KEY',
      message: 'Stripe secret key (sk_… or rk_…):',
    },
    {
      field: 'webhookSecret',
      variable: 'BILLING_CLI_STRIPE_WEBHOOK_SECRET',
      message: 'Stripe webhook signing secret (whsec_…):',
    },
  ],
  check: checkCardCredentials,
})

/** Tries a secret key at Stripe. The webhook secret cannot be tried, but another kind of key can be recognized. */
async function checkCardCredentials(
  config: Pick<Config, 'stripeApiBase'>,
  credentials: CardCredentials,
): Promise<CredentialsCheck> {
  const swapped = swappedKey(credentials)
  if (swapped !== null) return refused(swapped)
  const stripe = await stripeClient(config, credentials.secretKey)
  try {
    await stripe.checkout.sessions.list({ limit: 1 })
    return { result: 'ok', message: `Stripe accepts the secret key${isTestKey(credentials) ? IN_TEST_MODE : ''}` }
  } catch (thrown) {
    const failure = stripeFailureOf(thrown)
    if (failure.httpStatus === 401) return refused('Stripe does not know this secret key')
    if (failure.httpStatus === 403) return refused('the key may not read Checkout Sessions: give it that permission')
    return { result: 'unreachable', message: 'Stripe cannot be reached now; the key was not checked' }
  }
}

const IN_TEST_MODE = ', which is a test key: no card is charged, and anybody can pay with a test card'

function isTestKey({ secretKey }: CardCredentials): boolean {
  return /^[sr]k_test_/.test(secretKey)
}

/** Recognizes keys that were mixed up when they were copied from Stripe's dashboard. */
function swappedKey({ secretKey, webhookSecret }: CardCredentials): string | null {
  if (/^(pk|whsec)_/.test(secretKey)) {
    return 'the secret key is another key: it starts with sk_ or rk_ (Stripe dashboard, Developers, API keys)'
  }
  if (/^(pk|sk|rk)_/.test(webhookSecret)) {
    return 'the webhook secret is another key: it starts with whsec_ (Stripe dashboard, Webhooks, Signing secret)'
  }
  return null
}

function refused(message: string): CredentialsCheck {
  return { result: 'refused', message }
}
