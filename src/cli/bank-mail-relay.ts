import { RELAY_BODY_BYTES } from '#bank-mail/endpoint.ts'
import { postMail, relayBody } from '#bank-mail/post-mail.ts'
import { messageOf } from '#shared/errors.ts'
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

async function relay(recipients: readonly string[]): Promise<number> {
  if (recipients.length === 0 || recipients.includes('')) {
    printError('usage: bank-mail-relay <envelope recipient>… < mail')
    return WRONG_USAGE
  }
  const mail = await readMail()
  const bodies = recipients.map((envelopeTo) => relayBody(mail, envelopeTo))
  if (bodies.some((body) => body.length > RELAY_BODY_BYTES)) {
    printError('the mail is larger than the service accepts')
    return TOO_LARGE
  }
  // One after another. If a later recipient fails, the mail comes again for all, and the service recognizes the earlier ones.
  for (const body of bodies) openOutput(false).line(await postMail(body))
  return DECIDED
}

/** The mail's bytes, up to a little more than the limit. The rest is read and discarded, since a closed pipe is an error to mail servers. */
async function readMail(): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    if (size <= RELAY_BODY_BYTES) chunks.push(chunk)
    size += chunk.length
  }
  return Buffer.concat(chunks)
}

try {
  process.exitCode = await relay(process.argv.slice(2))
} catch (thrown) {
  printError(messageOf(thrown))
  process.exitCode = TRY_AGAIN
}
