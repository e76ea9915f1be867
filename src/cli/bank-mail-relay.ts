import { z } from 'zod'
import { RELAY_BODY_BYTES, RELAY_PATH } from '#bank-mail/endpoint.ts'
import { childEnvironment, loadConfig } from '#config.ts'
import { requestEndpoint } from '#http/outbound.ts'
import { hmacHex } from '#shared/crypto.ts'
import { messageOf } from '#shared/errors.ts'
import { systemClock, unixSeconds } from '#shared/time.ts'
import { openOutput, printError } from './output.ts'

/**
 * `bank-mail-relay <envelope recipient>…`: reads one mail from standard input, as a mail server pipes it, signs it and posts it to the
 * service (R201). Of the settings, it reads `BILLING_RELAY_SECRET` and `BILLING_BASE_URL` (or the listen address).
 *
 * Exit codes, which mail servers know from sysexits.h:
 *   0   the service accepted the mail for every recipient, whatever it decided about it
 *   64  wrong usage: no recipient
 *   65  the mail exceeds the service's limit, so that retrying is pointless
 *   75  anything else, such as an unreachable service or a wrong secret: the mail server keeps the mail and tries again
 */
const DECIDED = 0
const WRONG_USAGE = 64
const TOO_LARGE = 65
const TRY_AGAIN = 75

const DEADLINE_MS = 30_000

const Decision = z.object({ status: z.string().regex(/^[a-z_]+$/), reason: z.string().optional() })

async function relay(recipients: readonly string[]): Promise<number> {
  if (recipients.length === 0 || recipients.includes('')) {
    printError('usage: bank-mail-relay <envelope recipient>… < mail')
    return WRONG_USAGE
  }
  const mail = await readMail()
  const bodies = recipients.map((envelopeTo) => bodyOf(mail, envelopeTo))
  if (bodies.some((body) => body.length > RELAY_BODY_BYTES)) {
    printError('the mail is larger than the service accepts')
    return TOO_LARGE
  }
  // One after another. If a later recipient fails, the mail comes again for all, and the service recognizes the earlier ones.
  for (const body of bodies) openOutput(false).line(await post(body))
  return DECIDED
}

function bodyOf(mail: Buffer, envelopeTo: string): Buffer {
  return Buffer.from(JSON.stringify({ envelope_to: envelopeTo, raw: mail.toString('base64') }))
}

/** The mail's bytes, up to a little more than the limit. The rest is read and discarded, since mail servers mind a closed pipe. */
async function readMail(): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    if (size <= RELAY_BODY_BYTES) chunks.push(chunk)
    size += chunk.length
  }
  return Buffer.concat(chunks)
}

/** Returns the service's decision as one line. Throws if it made none. */
async function post(body: Buffer): Promise<string> {
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
  const decision = answer.status === 200 ? Decision.safeParse(parsed(answer.body)) : null
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

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return null
  }
}

try {
  process.exitCode = await relay(process.argv.slice(2))
} catch (thrown) {
  printError(messageOf(thrown))
  process.exitCode = TRY_AGAIN
}
