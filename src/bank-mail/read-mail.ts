import PostalMime from 'postal-mime'
import { findTransferCodes } from '#providers/bank-transfer/transfer-code.ts'
import { sha256Hex } from '#shared/crypto.ts'
import type { RealTime } from '#shared/time.ts'
import { isNoticeSubject, normalizeText, readText, type BankReader, type Notice } from './banks/reader.ts'
import { BANK_READERS } from './banks/readers.ts'
import { contentHashOf } from './content-hash.ts'
import { isWithin } from './domains.ts'
import { readForwardingRequest, type ForwardingRequest } from './forwarding-request.ts'
import { readHeader, valuesOf, type Header, type HeaderField } from './header-fields.ts'
import { htmlToText } from './html-text.ts'
import { readTrust } from './read-trust.ts'
import { soleAddressIn, type MailAddress } from './sender-address.ts'
import { isToSigned } from './dkim-signatures.ts'
import type { TrustPath, TrustSettings } from './trust.ts'

/** Everything that is kept of a mail. */
export interface MailReading {
  /** Short code of the bank in `From`; null for any other sender. */
  readonly bank: string | null
  /** How it was verified as that bank's; null if it was not. */
  readonly trust: TrustPath | null
  /** The printable characters of the field, at most `MAX_MESSAGE_ID_LENGTH`. */
  readonly messageId: string | null
  readonly messageIdHash: string | null
  readonly contentHash: string
  /** The one address of its one `To`, if every signature of the bank covers that field. */
  readonly to: MailAddress | null
  /** Null if no money came in, the mail is not trusted, or it is not a known notice. */
  readonly credit: ReadCredit | null
  /** Why an operator must review a genuine mail that is not a known notice; null if no review is needed. */
  readonly review: UnknownMail | null
  /** Null for every mail but Gmail's forwarding request. */
  readonly forwarding: ForwardingRequest | null
}

/** A bank's mail that may report money and is not a known notice. */
export interface UnknownMail {
  /** `not_understood`: from a sender address of notices. `unknown_sender`: from another address of the bank. */
  readonly kind: 'not_understood' | 'unknown_sender'
  /** The credit that it seems to report; null if that could not be read. */
  readonly credit: ReadCredit | null
}

export interface ReadCredit {
  readonly amount: number
  readonly account: string | null
  readonly reference: string
  readonly bookedAt: RealTime | null
  /** The different transfer codes in the transfer's text. */
  readonly codes: readonly string[]
}

const MAX_MESSAGE_ID_LENGTH = 998

/** Reads a mail (RFC 5322 bytes). Reads the body only of a mail whose header proves it genuine. */
export async function readMail(raw: Buffer, settings: TrustSettings): Promise<MailReading> {
  const header = readHeader(raw)
  const sender = findSender(header.fields)
  const trust = sender?.isCertain ? await readTrust(raw, header, sender.reader.domains, settings) : null
  const content = sender && trust ? await readContent(raw, header.fields, sender) : NOTHING
  const messageId = valuesOf(header.fields, 'message-id')[0]?.trim()
  return {
    bank: sender?.reader.code ?? null,
    trust,
    messageId: messageId ? printableMessageId(messageId) : null,
    messageIdHash: messageId ? sha256Hex(messageId) : null,
    contentHash: contentHashOf(raw),
    to: sender ? readRecipient(header, sender.reader) : null,
    ...content,
    forwarding: sender ? null : await readForwardingRequest(raw, header, settings),
  }
}

function printableMessageId(messageId: string): string {
  return messageId.replace(/[^\x20-\x7e]/g, '').slice(0, MAX_MESSAGE_ID_LENGTH)
}

function readRecipient(header: Header, reader: BankReader): MailAddress | null {
  return isToSigned(header, reader.domains) ? soleAddressIn(header.fields, 'to') : null
}

interface Sender {
  readonly reader: BankReader
  /** Whether the mail has one `From` with one address, which is the bank's. */
  readonly isCertain: boolean
  /** Whether it is a sender address of notices. */
  readonly isNotifier: boolean
}

/** The bank whose mail this is or claims to be. Ignores the name beside the address. */
function findSender(fields: readonly HeaderField[]): Sender | null {
  const address = soleAddressIn(fields, 'from')
  if (address) {
    const reader = BANK_READERS.find(({ domains }) => domains.some((domain) => isWithin(address.domain, domain)))
    const isNotifier = reader?.senders.includes(`${address.localPart.toLowerCase()}@${address.domain}`) ?? false
    return reader ? { reader, isCertain: true, isNotifier } : null
  }
  const froms = valuesOf(fields, 'from').join(' ')
  const claimed = BANK_READERS.find(({ domains }) => domains.some((domain) => names(froms, domain)))
  return claimed ? { reader: claimed, isCertain: false, isNotifier: false } : null
}

function names(text: string, domain: string): boolean {
  return new RegExp(`[@.]${domain.replaceAll('.', '\\.')}(?![\\w.-])`, 'i').test(text)
}

/** Replies and bounces quote what others wrote, under the bank's own signature. */
function isAnswer(fields: readonly HeaderField[]): boolean {
  const automatic = valuesOf(fields, 'auto-submitted').some((value) => /auto-replied/i.test(value))
  const reply = ['in-reply-to', 'references'].some((name) => valuesOf(fields, name).length > 0)
  return automatic || reply || valuesOf(fields, 'subject').some((subject) => /^\s*(re|fw|fwd|tr)\s*:/i.test(subject))
}

type Content = Pick<MailReading, 'credit' | 'review'>
const NOTHING: Content = { credit: null, review: null }

/** Reads the mail's text. Returns a credit only if the mail has the sender, the subject and the beginning of a notice. */
async function readContent(raw: Buffer, fields: readonly HeaderField[], sender: Sender): Promise<Content> {
  const { reader, isNotifier } = sender
  const { subject, texts } = await readParts(raw)
  const readings = texts.map((text) => readText(reader, text))
  const notice = agreed(readings.map((reading) => reading.notice))
  const credit = notice?.kind === 'credit' ? creditOf(notice) : null
  const isFromItsBeginning = readings.every((reading) => reading.isFromItsBeginning)
  if (isNotifier && isFromItsBeginning && !isAnswer(fields)) {
    if (notice?.kind === 'debit') return NOTHING
    if (credit && isNoticeSubject(reader, subject)) return { credit, review: null }
  }
  if (isNotifier) return { credit: null, review: { kind: 'not_understood', credit } }
  const isAboutCredit = credit !== null || texts.some((text) => reader.creditWords.test(text))
  return isAboutCredit ? { credit: null, review: { kind: 'unknown_sender', credit } } : NOTHING
}

/** The subject and the text of each part; nothing if the parser throws. */
async function readParts(raw: Buffer): Promise<{ readonly subject: string; readonly texts: readonly string[] }> {
  try {
    const { subject = '', text = '', html = '' } = await PostalMime.parse(raw, { forceRfc822Attachments: true })
    return { subject, texts: [text, htmlToText(html)].map(normalizeText).filter((words) => words !== '') }
  } catch {
    return { subject: '', texts: [] }
  }
}

/** The notice that the text part and the HTML part agree on; null if they differ. */
function agreed(notices: readonly (Notice | null)[]): Notice | null {
  const [first] = notices
  if (!first || notices.some((notice) => !notice || !isSame(notice, first))) return null
  return first
}

function creditOf({ credit: { content, ...facts } }: Extract<Notice, { kind: 'credit' }>): ReadCredit {
  return { ...facts, codes: findTransferCodes(content) }
}

function isSame(one: Notice, other: Notice): boolean {
  if (one.kind !== 'credit' || other.kind !== 'credit') return one.kind === other.kind
  const [first, second] = [creditOf(one), creditOf(other)]
  return (
    first.amount === second.amount &&
    first.account === second.account &&
    first.reference === second.reference &&
    first.codes.join() === second.codes.join()
  )
}
