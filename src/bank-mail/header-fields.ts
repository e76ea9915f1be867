/** One field of a mail's header. */
export interface HeaderField {
  /** In lower case. */
  readonly name: string
  /** Unfolded, one character a byte (Latin-1), so that nothing is lost or guessed before somebody asks for it. */
  readonly value: string
}

export interface Header {
  /** From top to bottom: what a server adds later stands higher. */
  readonly fields: readonly HeaderField[]
  /** False where any line is not what RFC 5322 allows; nothing such a header says is evidence. */
  readonly isWellFormed: boolean
}

/** A mail server writes a few dozen; what has more was made to be expensive. */
const MOST_FIELDS = 1000

/** Of header and body together: parsers take their time for each line, and what a mail has is counted in hundreds. */
const MOST_LINES = 10_000

/** Reads the header of a mail down to its first empty line. A first line `From …`, which some mail servers add for pipes, is no field. */
export function readHeader(raw: Buffer): Header {
  const text = raw.toString('latin1')
  const lines = headerLines(text)
  const fields: HeaderField[] = []
  let isWellFormed = lines.length > 0 && countLines(text) <= MOST_LINES
  for (const line of unfold(lines)) {
    if (fields.length > MOST_FIELDS) break
    const match = /^([\x21-\x39\x3b-\x7e]+)([ \t]*):(.*)$/s.exec(line)
    if (match) fields.push({ name: (match[1] as string).toLowerCase(), value: match[3] as string })
    // Blanks before the colon, NUL and lone CR: readers differ in what they make of them, and forgers know it.
    if (!match || match[2] !== '' || /[\0\r]/.test(line)) isWellFormed = false
  }
  return { fields, isWellFormed: isWellFormed && fields.length <= MOST_FIELDS }
}

/** The values of every field of this name (lower case), from top to bottom. */
export function valuesOf(fields: readonly HeaderField[], name: string): string[] {
  return fields.filter((field) => field.name === name).map(({ value }) => value)
}

/** A field's value with every comment left out, in time proportional to its length; null where a comment or a quotation does not end. */
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

/** Joins lines that start with a blank to the one before; a first line that does has nothing to be joined to. */
function unfold(lines: readonly string[]): string[] {
  const unfolded: string[][] = []
  for (const line of lines) {
    const current = unfolded.at(-1)
    if (/^[ \t]/.test(line) && current) current.push(line)
    else unfolded.push([line])
  }
  return unfolded.map((parts) => parts.join(''))
}
