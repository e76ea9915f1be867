import PostalMime from 'postal-mime'
import type { Header } from './header-fields.ts'
import { htmlToText } from './html-text.ts'
import { soleAddressIn } from './sender-address.ts'
import { isSignedBy, type TrustSettings } from './trust.ts'

/** Gmail's request to confirm that a mailbox may be forwarded to us: somebody must enter the code there, or open the link. */
export interface ForwardingRequest {
  /** The forwarding mailbox, masked, so that the operator who set it up recognizes it: `s…@gmail.com`. */
  readonly mailbox: string | null
  readonly code: string | null
  /** The address that confirms the request. Only an operator opens it. */
  readonly link: string | null
}

const SENDER = { localPart: 'forwarding-noreply', domain: 'google.com' }
const LINK = /https:\/\/(?:mail-settings|mail)\.google\.com\/mail\/vf-[\w%.~-]{8,400}/
const MAILBOX = /([\w.+-]{1,64})@([\w-]{1,63}(?:\.[\w-]{1,63}){1,4})/

/** The request in a mail, if our own server verified Google's signature; null for any other mail. */
export async function readForwardingRequest(
  raw: Buffer,
  header: Header,
  settings: TrustSettings,
): Promise<ForwardingRequest | null> {
  const sender = soleAddressIn(header.fields, 'from')
  if (sender?.localPart.toLowerCase() !== SENDER.localPart || sender.domain !== SENDER.domain) return null
  if (!isSignedBy(header, [SENDER.domain], settings)) return null
  const { subject = '', text = '', html = '' } = await PostalMime.parse(raw, { forceRfc822Attachments: true })
  const body = `${text}\n${htmlToText(html)}`
  const code = /\(#(\d{6,12})\)/.exec(subject)?.[1] ?? /[Cc]onfirmation code: ?(\d{6,12})\b/.exec(body)?.[1] ?? null
  // In the HTML part, the link is in an attribute.
  const link = LINK.exec(`${text}\n${html}`)?.[0] ?? null
  return code === null && link === null ? null : { mailbox: maskedMailbox(`${subject}\n${body}`), code, link }
}

function maskedMailbox(text: string): string | null {
  const [, localPart = '', domain = ''] = MAILBOX.exec(text) ?? []
  return localPart === '' ? null : `${localPart.charAt(0)}…@${domain}`
}
