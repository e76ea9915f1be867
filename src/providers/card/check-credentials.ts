import type { Credentials } from '#apps/methods.ts'
import type { Config } from '#config.ts'
import { stripeClient, stripeFault } from './client.ts'

/** Whether credentials work, in a sentence for the operator who gives them. */
export interface CredentialsCheck {
  readonly result: 'ok' | 'unreachable' | 'refused'
  readonly message: string
}

/** Tries a secret key at Stripe. The webhook secret cannot be tried; that another key was taken for it can be seen. */
export async function checkCardCredentials(
  config: Pick<Config, 'stripeApiBase'>,
  credentials: Credentials['card'],
): Promise<CredentialsCheck> {
  const swapped = swappedKey(credentials)
  if (swapped !== null) return refused(swapped)
  const stripe = await stripeClient(config, credentials.secretKey)
  try {
    await stripe.checkout.sessions.list({ limit: 1 })
    return { result: 'ok', message: 'Stripe accepts the secret key' }
  } catch (thrown) {
    const fault = stripeFault(thrown)
    if (fault.httpStatus === 401) return refused('Stripe does not know this secret key')
    if (fault.httpStatus === 403) return refused('the key may not read Checkout Sessions: give it that permission')
    return { result: 'unreachable', message: 'Stripe cannot be reached now; the key was not checked' }
  }
}

/** The mistakes that are made when keys are copied from Stripe's dashboard; everything else Stripe itself knows best. */
function swappedKey({ secretKey, webhookSecret }: Credentials['card']): string | null {
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
