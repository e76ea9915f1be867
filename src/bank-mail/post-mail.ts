import { z } from 'zod'
import { loadConfig } from '#config/config.ts'
import { childEnvironment } from '#config/environment.ts'
import { requestEndpoint } from '#http/outbound/request-endpoint.ts'
import { hmacHex } from '#shared/crypto.ts'
import { parseJson } from '#shared/parse-json.ts'
import { systemClock, unixSeconds } from '#shared/time.ts'
import { RELAY_PATH } from './endpoint.ts'

const DEADLINE_MS = 30_000

const Decision = z.object({ status: z.string().regex(/^[a-z_]+$/), reason: z.string().optional() })

/** The body with which a mail server's mail is posted. */
export function relayBody(mail: Buffer, envelopeTo: string): Buffer {
  return Buffer.from(JSON.stringify({ envelope_to: envelopeTo, raw: mail.toString('base64') }))
}

/** Signs and posts a mail; returns the service's decision as one line. Throws if the service made no decision. */
export async function postMail(body: Buffer): Promise<string> {
  const { secret, url } = settings()
  const timestamp = String(unixSeconds(systemClock.now()))
  const answer = await requestEndpoint({
    method: 'POST',
    url,
    headers: {
      'content-type': 'application/json',
      'x-timestamp': timestamp,
      'x-signature': hmacHex(secret, `${timestamp}.`, body),
    },
    body,
    deadlineMs: DEADLINE_MS,
  })
  const decision = answer.status === 200 ? Decision.safeParse(parseJson(answer.body)) : null
  if (!decision?.success) throw new Error(`${url} answered ${answer.status}: ${hintFor(answer.status)}`)
  const { status, reason } = decision.data
  return reason === undefined ? status : `${status}: ${reason}`
}

function settings(): { secret: string; url: string } {
  // Production requires keys and a database, which a mail server's user must not have.
  const { relay: relaySettings, baseUrl, port } = loadConfig(childEnvironment({ BILLING_ENV: 'development' }))
  if (relaySettings.secret === null) throw new Error('BILLING_RELAY_SECRET is not set')
  if (port === 0 && baseUrl.endsWith(':0')) throw new Error('BILLING_BASE_URL is not set')
  return { secret: relaySettings.secret, url: `${baseUrl}${RELAY_PATH}` }
}

function hintFor(status: number): string {
  if (status === 400) return 'is BILLING_RELAY_SECRET the same there, and are both clocks right?'
  if (status === 404) return 'is BILLING_RELAY_SECRET set there?'
  return 'not a decision'
}
