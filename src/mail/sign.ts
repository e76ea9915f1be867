import DkimSigner from 'nodemailer/lib/dkim'
import type { Readable } from 'node:stream'
import type { Config } from '#config/config.ts'

/** Signs a message: what goes in is the message, what comes out is the same below a DKIM-Signature. */
export type SignMessage = (message: Readable) => Readable

/** RFC 8058 wants both headers of one click to unsubscribe signed, and nodemailer's own list has only the first. */
const SIGNED_HEADERS = [
  ...['From', 'Sender', 'Reply-To', 'Subject', 'Date', 'Message-ID', 'To', 'Cc', 'MIME-Version'],
  ...['Content-Type', 'Content-Transfer-Encoding', 'List-Unsubscribe', 'List-Unsubscribe-Post'],
].join(':')

/** By the key of the settings; null without one. */
export function dkimSigner({ dkim }: Config): SignMessage | null {
  if (dkim === null) return null
  const signer = new DkimSigner({
    domainName: dkim.domain,
    keySelector: dkim.selector,
    privateKey: dkim.privateKey,
    headerFieldNames: SIGNED_HEADERS,
  })
  return (message) => signer.sign(message)
}
