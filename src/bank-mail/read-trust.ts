import PostalMime from 'postal-mime'
import type { Header } from './header-fields.ts'
import { findTrust, type TrustPath, type TrustSettings } from './trust.ts'

/**
 * How the mail is shown to be one of `domains`' (a bank's), or null where it is not, or where whoever sent it on may have chosen how its
 * body is read (contract 7, "Bank mails"). Google Workspace signs neither `Content-Type` nor `Content-Transfer-Encoding`, and a body that is
 * signed tells something else under another character set, boundary or encoding.
 */
export async function readTrust(
  raw: Buffer,
  header: Header,
  domains: readonly string[],
  settings: TrustSettings,
): Promise<TrustPath | null> {
  const trust = findTrust(header, domains, settings)
  if (!trust) return null
  const [isTypeSigned, isEncodingSigned] = [TYPE, ENCODING].map((name) => trust.covered.has(name))
  if (isTypeSigned && isEncodingSigned) return trust.path
  const root = await readParts(raw)
  if (!root) return null
  const isClear = (isTypeSigned || isReadOneWay(root)) && (isEncodingSigned || isEncodedAsSaid(root, bodyOf(raw)))
  return isClear ? trust.path : null
}

const TYPE = 'content-type'
const ENCODING = 'content-transfer-encoding'

/** A part of a mail as the parser built it: the structure from which it takes the texts that are read, so that none is overlooked. */
interface Part {
  readonly childNodes: readonly Part[]
  readonly contentType: {
    readonly parsed: { readonly value: string; readonly params: Readonly<Record<string, string>> }
    /** `alternative` of `multipart/alternative`. */
    readonly multipart: string | false
  }
  readonly contentDisposition: { readonly parsed: { readonly value: string } }
  readonly contentTransferEncoding: { readonly encoding: string }
  /** Decoded; of a multipart, what stands before its first part. */
  readonly content: ArrayBuffer | null
}

/** Null where the parser gives up. */
async function readParts(raw: Buffer): Promise<Part | null> {
  const parser = new PostalMime({ forceRfc822Attachments: true })
  try {
    await parser.parse(raw)
  } catch {
    return null
  }
  // Its declared type leaves the tree out, and the version is fixed: another one that has none fails the tests of this file.
  return (parser as unknown as { readonly root: Part }).root
}

const TEXT_TYPES: readonly string[] = ['text/plain', 'text/html']
const CHARSETS: readonly (string | undefined)[] = [undefined, 'utf-8', 'utf8', 'us-ascii', 'ascii']
/** Of a body that stands there as it is. */
const PLAIN_ENCODINGS: readonly string[] = ['', '7bit', '8bit', 'binary']
/** What mail programs write before the first part, for readers that know no parts. */
const PREAMBLE = /^this is a multi-?part message in mime format\.?$/i

/** Whether nobody could have had other words read by choosing another type for the whole mail. */
function isReadOneWay(root: Part): boolean {
  if (root.contentType.multipart !== false) return isPlainPart(root)
  return isReadText(root) && isPlainText(root) && looksLikeItsType(root)
}

function isPlainPart(part: Part): boolean {
  if (part.contentType.multipart !== false) return isPlainMultipart(part) && part.childNodes.every(isPlainPart)
  return !isReadText(part) || isPlainText(part)
}

/** Whoever chooses the boundary chooses what stands before the first part, where nobody reads it. In a digest, parts are mails. */
function isPlainMultipart(part: Part): boolean {
  if (part.childNodes.length === 0 || part.contentType.multipart === 'digest') return false
  const preamble = PLAIN_ENCODINGS.includes(part.contentTransferEncoding.encoding) ? textOf(part)?.trim() : undefined
  return preamble !== undefined && (preamble === '' || PREAMBLE.test(preamble))
}

function isReadText({ contentType, contentDisposition }: Part): boolean {
  return TEXT_TYPES.includes(contentType.parsed.value) && contentDisposition.parsed.value !== 'attachment'
}

/** Without a character set, what is not ASCII is read as UTF-8; under the name of ASCII, it would be read as something else. */
function isPlainText(part: Part): boolean {
  const { charset, delsp } = part.contentType.parsed.params
  const name = charset?.trim().toLowerCase()
  const text = textOf(part)
  // Text that flows with `delsp` loses blanks.
  if (text === null || !CHARSETS.includes(name) || delsp?.toLowerCase() === 'yes') return false
  return !name?.endsWith('ascii') || /^[\0-\x7f]*$/.test(text)
}

/** Text that is read as HTML loses what looks like markup, and HTML that is read as text shows it. */
function looksLikeItsType(part: Part): boolean {
  return (part.contentType.parsed.value === 'text/html') === (textOf(part) ?? '').trimStart().startsWith('<')
}

/** The part's bytes as UTF-8; null where they are not. */
function textOf({ content }: Part): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(content ?? new ArrayBuffer(0))
  } catch {
    return null
  }
}

/** Whether the body is encoded as the mail's own header says. The parts of a multipart say it in the body. */
function isEncodedAsSaid({ contentType, contentTransferEncoding: { encoding } }: Part, body: string): boolean {
  if (contentType.multipart !== false) return true
  if (encoding === 'base64') return /^[A-Za-z0-9+/]*={0,2}$/.test(body.replace(/[\r\n]/g, ''))
  if (encoding === 'quoted-printable') return !/[\x80-\xff]|=(?![0-9A-Fa-f]{2}|\r?\n|$)/.test(body)
  return PLAIN_ENCODINGS.includes(encoding)
}

/** What stands below the header, one character a byte. */
function bodyOf(raw: Buffer): string {
  const text = raw.toString('latin1')
  return text.slice(text.search(/\n\r?\n/) + 1)
}
