import PostalMime from 'postal-mime'
import { valuesOf, type Header } from './header-fields.ts'
import { htmlToText } from './html-text.ts'
import { readSoleAddress } from './sender-address.ts'
import { isSignedBy, type TrustSettings } from './trust.ts'

/** Gmail asks whether it may forward a mailbox to us: somebody must enter the code there, or open the link. */
export interface ForwardingRequest {
  /** Whose mails are to come, for the operator who asked for it to know: `s…@gmail.com`. */
  readonly mailbox: string | null
  readonly code: string | null
  /** An address of Gmail's that says yes. Nobody opens it but an operator. */
  readonly link: string | null
}

const SENDER = { localPart: 'forwarding-noreply', domain: 'google.com' }
const LINK = /https:\/\/(?:mail-settings|mail)\.google\.com\/mail\/vf-[\w%.~-]{8,400}/
const MAILBOX = /([\w.+-]{1,64})@([\w-]{1,63}(?:\.[\w-]{1,63}){1,4})/

/** The request in a mail of Gmail's that our own server found to be signed by it; null where it is none. */
export async function readForwardingRequest(
  raw: Buffer,
  header: Header,
  settings: TrustSettings,
): Promise<ForwardingRequest | null> {
  const froms = valuesOf(header.fields, 'from')
  const sender = froms.length === 1 ? readSoleAddress(froms[0] as string) : null
  if (sender?.localPart.toLowerCase() !== SENDER.localPart || sender.domain !== SENDER.domain) return null
  if (!isSignedBy(header, [SENDER.domain], settings)) return null
  const { subject = '', text = '', html = '' } = await PostalMime.parse(raw, { forceRfc822Attachments: true })
  const body = `${text}\n${htmlToText(html)}`
  const code = /\(#(\d{6,12})\)/.exec(subject)?.[1] ?? /[Cc]onfirmation code: ?(\d{6,12})\b/.exec(body)?.[1] ?? null
  // Links of the HTML part stand in its attributes.
  const link = LINK.exec(`${text}\n${html}`)?.[0] ?? null
  return code === null && link === null ? null : { mailbox: maskedMailbox(`${subject}\n${body}`), code, link }
}

function maskedMailbox(text: string): string | null {
  const [, localPart = '', domain = ''] = MAILBOX.exec(text) ?? []
  return localPart === '' ? null : `${localPart.charAt(0)}…@${domain}`
}
