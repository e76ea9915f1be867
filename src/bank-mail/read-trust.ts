import PostalMime from 'postal-mime'
import type { Header } from './header-fields.ts'
import { trustOfHeader, type TrustPath, type TrustSettings } from './trust.ts'

/**
 * How the mail is verified as one of `domains` (a bank's). Null if it is not, or if a forwarder may have chosen how its body is read:
 * Google Workspace signs neither `Content-Type` nor `Content-Transfer-Encoding`, and a signed body reads differently under another
 * character set, boundary or encoding. The checks rely on three facts: no notice begins with `--`, none begins with `<` as text, and none
 * consists of base64 characters alone (R194).
 */
export async function readTrust(
  raw: Buffer,
  header: Header,
  domains: readonly string[],
  settings: TrustSettings,
): Promise<TrustPath | null> {
  const trust = trustOfHeader(header, domains, settings)
  if (!trust) return null
  const isTypeSigned = trust.covered.has('content-type')
  const isEncodingSigned = trust.covered.has('content-transfer-encoding')
  if (isTypeSigned && isEncodingSigned) return trust.path
  const root = await readParts(raw)
  if (!root) return null
  const isClear = (isTypeSigned || isReadOneWay(root)) && (isEncodingSigned || isEncodedAsSaid(root, bodyOf(raw)))
  return isClear ? trust.path : null
}

/** A part of a mail in the parser's own tree, from which it takes the texts, so that no part is overlooked. */
interface Part {
  readonly childNodes: readonly Part[]
  readonly contentType: {
    readonly parsed: { readonly value: string; readonly params: Readonly<Record<string, string>> }
    /** `alternative` of `multipart/alternative`. */
    readonly multipart: string | false
  }
  readonly contentDisposition: { readonly parsed: { readonly value: string } }
  readonly contentTransferEncoding: { readonly encoding: string }
  /** Decoded; of a multipart, the preamble. */
  readonly content: ArrayBuffer | null
}

/** The root part; null if the parser throws. */
async function readParts(raw: Buffer): Promise<Part | null> {
  const parser = new PostalMime({ forceRfc822Attachments: true })
  try {
    await parser.parse(raw)
  } catch {
    return null
  }
  // The declared type omits the tree. The version is pinned, and the tests of this file fail if another one has no tree.
  return (parser as unknown as { readonly root: Part }).root
}

const TEXT_TYPES: readonly string[] = ['text/plain', 'text/html']
const CHARSETS: readonly (string | undefined)[] = [undefined, 'utf-8', 'utf8', 'us-ascii', 'ascii']
/** Encodings that do not change the body. */
const PLAIN_ENCODINGS: readonly string[] = ['', '7bit', '8bit', 'binary']
/** The usual preamble of mail programs. */
const PREAMBLE = /^this is a multi-?part message in mime format\.?$/i

/** Whether no other `Content-Type` of the whole mail would make us read other words. */
function isReadOneWay(root: Part): boolean {
  if (root.contentType.multipart !== false) return isPlainPart(root)
  return isReadText(root) && isPlainText(root) && looksLikeItsType(root)
}

function isPlainPart(part: Part): boolean {
  if (part.contentType.multipart !== false) return isPlainMultipart(part) && part.childNodes.every(isPlainPart)
  return !isReadText(part) || isPlainText(part)
}

/** Whether no other boundary could hide words in the preamble, which nobody reads. In a digest, parts are mails. */
function isPlainMultipart(part: Part): boolean {
  if (part.childNodes.length === 0 || part.contentType.multipart === 'digest') return false
  const preamble = PLAIN_ENCODINGS.includes(part.contentTransferEncoding.encoding) ? textOf(part)?.trim() : undefined
  return preamble !== undefined && (preamble === '' || PREAMBLE.test(preamble))
}

function isReadText({ contentType, contentDisposition }: Part): boolean {
  return TEXT_TYPES.includes(contentType.parsed.value) && contentDisposition.parsed.value !== 'attachment'
}

/** Without a character set, text is read as UTF-8; under the name of ASCII, other bytes would be read differently. */
function isPlainText(part: Part): boolean {
  const { charset, delsp } = part.contentType.parsed.params
  const name = charset?.trim().toLowerCase()
  const text = textOf(part)
  // Flowed text with `delsp` loses blanks.
  if (text === null || !CHARSETS.includes(name) || delsp?.toLowerCase() === 'yes') return false
  return !name?.endsWith('ascii') || /^[\0-\x7f]*$/.test(text)
}

/** Text that is read as HTML loses what looks like markup, and HTML that is read as text shows its markup. */
function looksLikeItsType(part: Part): boolean {
  return (part.contentType.parsed.value === 'text/html') === (textOf(part) ?? '').trimStart().startsWith('<')
}

/** The part's bytes as UTF-8; null if they are not valid. */
function textOf({ content }: Part): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(content ?? new ArrayBuffer(0))
  } catch {
    return null
  }
}

/** Whether the body has the encoding of the mail's header. Parts of a multipart declare theirs in the signed body. */
function isEncodedAsSaid({ contentType, contentTransferEncoding: { encoding } }: Part, body: string): boolean {
  if (contentType.multipart !== false) return true
  if (encoding === 'base64') return /^[A-Za-z0-9+/]*={0,2}$/.test(body.replace(/[\r\n]/g, ''))
  if (encoding === 'quoted-printable') return !/[\x80-\xff]|=(?![0-9A-Fa-f]{2}|\r?\n|$)/.test(body)
  return PLAIN_ENCODINGS.includes(encoding)
}

/** The body, one character per byte. */
function bodyOf(raw: Buffer): string {
  const text = raw.toString('latin1')
  return text.slice(text.search(/\n\r?\n/) + 1)
}
