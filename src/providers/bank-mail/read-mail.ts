import PostalMime from 'postal-mime'
import { findTransferCodes } from '#providers/bank-transfer/transfer-code.ts'
import { sha256Hex } from '#shared/crypto.ts'
import type { BankReader } from './banks/reader.ts'
import { normalizeText } from './banks/reader.ts'
import { BANK_READERS } from './banks/readers.ts'
import { isWithin } from './domains.ts'
import { readForwardingRequest } from './forwarding-request.ts'
import type { ForwardingRequest } from './forwarding-request.ts'
import { readHeader, valuesOf } from './header-fields.ts'
import type { HeaderField } from './header-fields.ts'
import { htmlToText } from './html-text.ts'
import { readTrust } from './read-trust.ts'
import { readSoleAddress } from './sender-address.ts'
import type { TrustPath, TrustSettings } from './trust.ts'

/** What a mail says, and nothing else of it. */
export interface MailReading {
  /** Short code of the bank that the mail says it is from; null where it says none whose mails we read. */
  readonly bank: string | null
  /** How it was shown to be that bank's; null where it was not. */
  readonly trust: TrustPath | null
  readonly messageIdHash: string | null
  readonly contentHash: string
  /** Null where no money came in, or where the mail is not trusted. */
  readonly credit: ReadCredit | null
  /** Null in a bank's mail, and in every other that is not Gmail's question. */
  readonly forwarding: ForwardingRequest | null
}

export interface ReadCredit {
  readonly amount: number
  readonly account: string | null
  readonly reference: string
  readonly bookedAt: Date | null
  /** The different transfer codes in the transfer's text. */
  readonly codes: readonly string[]
}

/** Reads a mail (RFC 5322 bytes). Its body is looked at only where its header proves it genuine. */
export async function readMail(raw: Buffer, settings: TrustSettings): Promise<MailReading> {
  const header = readHeader(raw)
  const sender = findSender(header.fields)
  const trust = sender?.isCertain ? await readTrust(raw, header, sender.reader.domains, settings) : null
  const credit = sender && trust && !isAnswer(header.fields) ? await readCredit(raw, sender.reader) : null
  const messageId = valuesOf(header.fields, 'message-id')[0]?.trim()
  return {
    bank: sender?.reader.code ?? null,
    trust,
    messageIdHash: messageId ? sha256Hex(messageId) : null,
    contentHash: sha256Hex(bodyOf(raw)),
    credit,
    forwarding: sender ? null : await readForwardingRequest(raw, header, settings),
  }
}

interface Sender {
  readonly reader: BankReader
  /** Whether the mail has one `From` with one address, and that is the bank's. */
  readonly isCertain: boolean
}

/** The bank whose mail this is or claims to be. The name beside the address is never read. */
function findSender(fields: readonly HeaderField[]): Sender | null {
  const froms = valuesOf(fields, 'from')
  const address = froms.length === 1 ? readSoleAddress(froms[0] as string) : null
  if (address) {
    const reader = BANK_READERS.find(({ domains }) => domains.some((domain) => isWithin(address.domain, domain)))
    return reader ? { reader, isCertain: true } : null
  }
  const claimed = BANK_READERS.find(({ domains }) => domains.some((domain) => names(froms.join(' '), domain)))
  return claimed ? { reader: claimed, isCertain: false } : null
}

function names(text: string, domain: string): boolean {
  return new RegExp(`[@.]${domain.replaceAll('.', '\\.')}(?![\\w.-])`, 'i').test(text)
}

/** Answers and bounces quote what others wrote, over the bank's own signature. */
function isAnswer(fields: readonly HeaderField[]): boolean {
  const automatic = valuesOf(fields, 'auto-submitted').some((value) => /auto-replied/i.test(value))
  const reply = ['in-reply-to', 'references'].some((name) => valuesOf(fields, name).length > 0)
  return automatic || reply || valuesOf(fields, 'subject').some((subject) => /^\s*(re|fw|fwd|tr)\s*:/i.test(subject))
}

/** Null where there is no credit, and where the text part and the HTML part do not tell of the same one. */
async function readCredit(raw: Buffer, reader: BankReader): Promise<ReadCredit | null> {
  const mail = await PostalMime.parse(raw, { forceRfc822Attachments: true })
  const parts = [mail.text ?? '', mail.html === undefined ? '' : htmlToText(mail.html)]
  const credits = parts
    .map(normalizeText)
    .filter((text) => text !== '')
    .map((text) => creditIn(text, reader))
  const [first] = credits
  if (!first || credits.some((credit) => !credit || !isSame(credit, first))) return null
  return first
}

function creditIn(text: string, reader: BankReader): ReadCredit | null {
  const credit = reader.readCredit(text)
  if (!credit) return null
  const { content, ...facts } = credit
  return { ...facts, codes: findTransferCodes(content) }
}

function isSame(one: ReadCredit, other: ReadCredit): boolean {
  return (
    one.amount === other.amount &&
    one.account === other.account &&
    one.reference === other.reference &&
    one.codes.join() === other.codes.join()
  )
}

/** What stands below the header: it is the same whichever way the mail came. */
function bodyOf(raw: Buffer): Buffer {
  const ends = ['\n\n', '\n\r\n'].map((end) => raw.indexOf(end)).filter((at) => at !== -1)
  return ends.length === 0 ? Buffer.alloc(0) : raw.subarray(Math.min(...ends))
}
