import { requestEndpoint } from '#http/outbound/request-endpoint.ts'
import { hmacHex } from '#shared/crypto.ts'
import { systemClock, unixSeconds } from '#shared/time.ts'

const DEADLINE_MS = 15_000

/** What a seller's server holds. */
export interface Keys {
  readonly baseUrl: string
  readonly apiKey: string
  readonly apiSecret: string
}

/** A signed call of the API, as a seller's server makes it; gives the answer's `data`. */
export async function callApi(
  keys: Keys,
  method: 'GET' | 'POST',
  path: string,
  input?: object,
): Promise<Record<string, unknown>> {
  const body = input === undefined ? '' : JSON.stringify(input)
  const timestamp = String(unixSeconds(systemClock.now()))
  const answer = await requestEndpoint({
    method,
    url: keys.baseUrl + path,
    headers: {
      'X-App-Key': keys.apiKey,
      'X-Timestamp': timestamp,
      'X-Signature': hmacHex(keys.apiSecret, `${timestamp}.${method}.${path}.${body}`),
      ...(body === '' ? {} : { 'Content-Type': 'application/json' }),
    },
    ...(body === '' ? {} : { body }),
    deadlineMs: DEADLINE_MS,
  })
  if (answer.status >= 300) throw new Error(`${method} ${path} answered ${answer.status}: ${answer.body}`)
  return (JSON.parse(answer.body) as { data: Record<string, unknown> }).data
}

/** Opens the hosted page and submits its form, as a payer's browser does; returns where it is sent. */
export async function payOnHostedPage(checkoutUrl: string, method: string): Promise<string> {
  const page = await requestEndpoint({ method: 'GET', url: checkoutUrl, deadlineMs: DEADLINE_MS })
  if (page.status !== 200) throw new Error(`the hosted page answered ${page.status}`)
  const submitted = await requestEndpoint({
    method: 'POST',
    url: `${checkoutUrl}/resolve`,
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ payment_method: method }).toString(),
    deadlineMs: DEADLINE_MS,
  })
  if (submitted.status !== 303) throw new Error(`the payment answered ${submitted.status}: ${submitted.body}`)
  return String(submitted.headers['location'])
}
