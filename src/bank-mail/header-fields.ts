/** One field of a mail's header. */
export interface HeaderField {
  /** In lower case. */
  readonly name: string
  /** Unfolded, one character per byte (Latin-1), so that no byte is lost before it is decoded. */
  readonly value: string
}

export interface Header {
  /** From top to bottom: servers add fields at the top. */
  readonly fields: readonly HeaderField[]
  /** False if a line violates RFC 5322; such a header proves nothing. */
  readonly isWellFormed: boolean
}

/** Genuine mails have a few dozen. More are an attack. */
const MAX_FIELDS = 1000

/** Of header and body together. Genuine mails have hundreds, and parsers take time for each line. */
const MAX_LINES = 10_000

/** Reads the header of a mail down to its first empty line. Skips a first line `From …`, which some mail servers add for pipes. */
export function readHeader(raw: Buffer): Header {
  const text = raw.toString('latin1')
  const lines = headerLines(text)
  const fields: HeaderField[] = []
  let isWellFormed = lines.length > 0 && countLines(text) <= MAX_LINES
  for (const line of unfold(lines)) {
    if (fields.length > MAX_FIELDS) break
    const match = /^([\x21-\x39\x3b-\x7e]+)([ \t]*):(.*)$/s.exec(line)
    if (match) fields.push({ name: (match[1] as string).toLowerCase(), value: match[3] as string })
    // Forgers exploit that parsers disagree about blanks before the colon, NUL and lone CR.
    if (!match || match[2] !== '' || /[\0\r]/.test(line)) isWellFormed = false
  }
  return { fields, isWellFormed: isWellFormed && fields.length <= MAX_FIELDS }
}

/** The values of every field of this name (lower case), from top to bottom. */
export function valuesOf(fields: readonly HeaderField[], name: string): string[] {
  return fields.filter((field) => field.name === name).map(({ value }) => value)
}

/** A field's value without comments, in time proportional to its length; null if a comment or a quotation does not end. */
export function withoutComments(value: string): string | null {
  let text = ''
  let depth = 0
  let isQuoted = false
  for (let at = 0; at < value.length; at += 1) {
    const character = value.charAt(at)
    if (character === '\\' && (isQuoted || depth > 0)) {
      at += 1
      if (depth === 0) text += character + value.charAt(at)
      continue
    }
    if (character === '"' && depth === 0) isQuoted = !isQuoted
    if (character === '(' && !isQuoted) depth += 1
    else if (character === ')' && depth > 0) depth -= 1
    else if (depth === 0) text += character
  }
  return depth === 0 && !isQuoted ? text : null
}

function countLines(text: string): number {
  let count = 0
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count += 1
  return count
}

function headerLines(text: string): string[] {
  const lines: string[] = []
  for (let start = 0; start < text.length;) {
    const newline = text.indexOf('\n', start)
    const end = newline === -1 ? text.length : newline
    const line = text.slice(start, end).replace(/\r$/, '')
    if (line === '') break
    if (!(start === 0 && line.startsWith('From '))) lines.push(line)
    start = end + 1
  }
  return lines
}

/** Joins each line that starts with a blank to the previous one, if there is one. */
function unfold(lines: readonly string[]): string[] {
  const unfolded: string[][] = []
  for (const line of lines) {
    const current = unfolded.at(-1)
    if (/^[ \t]/.test(line) && current) current.push(line)
    else unfolded.push([line])
  }
  return unfolded.map((parts) => parts.join(''))
}
