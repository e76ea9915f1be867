/** One parsed `Authentication-Results` field (RFC 8601). */
export interface AuthenticationResults {
  /** The server that wrote it, in lower case. */
  readonly authservId: string
  /** Empty if the field says `none`: the server checked nothing. */
  readonly results: readonly MethodResult[]
  /** Whether it has no versions, only the property types of RFC 8601 and no `action=`, so that every server can read it. */
  readonly isPlain: boolean
  /** False if a comment contains a part of a quotation, or a quoted value contains what could end a comment or a value. */
  readonly isIntact: boolean
}

export interface MethodResult {
  /** `dkim`, in lower case and without its version. */
  readonly method: string
  /** `pass`, in lower case. */
  readonly result: string
  /** By `header.d`, in lower case. */
  readonly properties: ReadonlyMap<string, string>
  /** The server's comments on this result. They prove nothing, but may invalidate it. */
  readonly remarks: string
}

/**
 * Parses the value of the field strictly; null if it violates the grammar, since forgers exploit lenient parsers. Three exceptions, which
 * common servers need: an unquoted property value may contain `/`, `=`, `:`, `+` and brackets (base64, IPv6), a quoted local part may
 * stand before `@domain`, and a `dmarc` result may have an `action=`, as Exchange Online writes it into its ARC chains. A quoted authserv-id,
 * which no server writes, is refused.
 */
export function parseAuthenticationResults(value: string): AuthenticationResults | null {
  try {
    return new Reader(value).readField()
  } catch (error) {
    if (error instanceof SyntaxViolation) return null
    throw error
  }
}

class SyntaxViolation extends Error {}

const BLANK = /[ \t]/
const DIGITS = /[0-9]+/y
const KEYWORD = /[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?/y
const PLAIN_TYPES: ReadonlySet<string> = new Set(['smtp', 'header', 'body', 'policy'])
/** RFC 2045 token. */
const TOKEN = /[!#$%&'*+\-.0-9A-Z^_`a-z{|}~]+/y
/** A name, or an address with or without its local part. */
const PROPERTY_VALUE =
  /[!#$%&'*+\-./0-9:=?A-Z[\]^_`a-z{|}~]*(?:@(?:[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*|\[[0-9A-Za-z.:]+\]))?/y
const QUOTED = /"(?:[\x20\x21\x23-\x5b\x5d-\x7e\t\x80-\xff]|\\[\x20-\x7e\t])*"/y

class Reader {
  readonly #text: string
  #at = 0
  #remarks = ''
  #isPlain = true
  #isIntact = true

  constructor(text: string) {
    this.#text = text
  }

  readField(): AuthenticationResults {
    this.#skip()
    const authservId = this.#take(TOKEN).toLowerCase()
    this.#expectBoundary()
    this.#skip()
    if (/[0-9]/.test(this.#next())) this.#readVersion()
    const results: MethodResult[] = []
    let isNone = false
    while (!this.#isAtEnd()) {
      this.#expect(';')
      this.#skip()
      const result = this.#readResult()
      if (result) results.push(result)
      else isNone = true
    }
    const isEmpty = results.length === 0
    if (isNone !== isEmpty) throw new SyntaxViolation()
    return { authservId, results, isPlain: this.#isPlain, isIntact: this.#isIntact }
  }

  #readVersion(): void {
    this.#isPlain = false
    if (this.#take(DIGITS) !== '1') throw new SyntaxViolation()
    this.#expectBoundary()
    this.#skip()
  }

  /** A result with its properties; null for `none`, which must then be the only entry. */
  #readResult(): MethodResult | null {
    this.#remarks = ''
    const method = this.#take(KEYWORD).toLowerCase()
    this.#skip()
    if (method === 'none') return this.#readNothing()
    if (this.#next() === '/') this.#readMethodVersion()
    this.#expect('=')
    this.#skip()
    const result = this.#take(KEYWORD).toLowerCase()
    this.#expectBoundary()
    this.#skip()
    const properties = this.#readProperties(method)
    return { method, result, properties, remarks: this.#remarks }
  }

  #readNothing(): null {
    if (!this.#isAtEnd()) throw new SyntaxViolation()
    return null
  }

  #readMethodVersion(): void {
    this.#isPlain = false
    this.#expect('/')
    this.#skip()
    if (this.#take(DIGITS) !== '1') throw new SyntaxViolation()
    this.#skip()
  }

  #readProperties(method: string): Map<string, string> {
    const properties = new Map<string, string>()
    let isFirst = true
    while (!this.#isAtEnd() && this.#next() !== ';') {
      const type = this.#take(KEYWORD).toLowerCase()
      this.#skip()
      if (type === 'reason' && isFirst && this.#next() === '=') this.#readReason()
      else if (type === 'action' && method === 'dmarc' && this.#next() === '=') this.#readAction()
      else this.#readProperty(type, properties)
      isFirst = false
    }
    return properties
  }

  #readReason(): void {
    this.#expect('=')
    this.#skip()
    this.#take(this.#next() === '"' ? QUOTED : TOKEN)
    this.#expectBoundary()
    this.#skip()
  }

  #readAction(): void {
    this.#isPlain = false
    this.#expect('=')
    this.#skip()
    this.#take(TOKEN)
    this.#expectBoundary()
    this.#skip()
  }

  #readProperty(type: string, properties: Map<string, string>): void {
    if (!PLAIN_TYPES.has(type)) this.#isPlain = false
    this.#expect('.')
    this.#skip()
    const name = `${type}.${this.#take(KEYWORD).toLowerCase()}`
    this.#skip()
    this.#expect('=')
    this.#skip()
    const value = this.#readPropertyValue()
    // A forger may have added the second one.
    if (properties.has(name)) throw new SyntaxViolation()
    properties.set(name, value)
    this.#expectBoundary()
    this.#skip()
  }

  #readPropertyValue(): string {
    if (this.#next() !== '"') return this.#take(PROPERTY_VALUE)
    const quoted = this.#take(QUOTED).slice(1, -1).replace(/\\(.)/g, '$1')
    if (/[\s"();\\]/.test(quoted)) this.#isIntact = false
    return this.#next() === '@' ? quoted + this.#take(PROPERTY_VALUE) : quoted
  }

  /** Requires that a token ends here: `timo.vn(.attack.example)` is one hostile name, not a name and a comment. */
  #expectBoundary(): void {
    if (!this.#isAtEnd() && !BLANK.test(this.#next()) && this.#next() !== ';') throw new SyntaxViolation()
  }

  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#text)
    if (!match?.[0]) throw new SyntaxViolation()
    this.#at += match[0].length
    return match[0]
  }

  #expect(character: string): void {
    if (this.#next() !== character) throw new SyntaxViolation()
    this.#at += 1
  }

  #next(): string {
    return this.#text.charAt(this.#at)
  }

  #isAtEnd(): boolean {
    return this.#at >= this.#text.length
  }

  /** Skips blanks and comments. */
  #skip(): void {
    for (;;) {
      while (BLANK.test(this.#next())) this.#at += 1
      if (this.#next() !== '(') return
      this.#skipComment()
    }
  }

  #skipComment(): void {
    const start = this.#at
    let depth = 0
    let quotes = 0
    do {
      const character = this.#next()
      if (character === '' || /[\0-\x08\x0a-\x1f\x7f]/.test(character)) throw new SyntaxViolation()
      if (character === '\\') this.#at += 1
      if (character === '"') quotes += 1
      if (character === '(') depth += 1
      if (character === ')') depth -= 1
      this.#at += 1
    } while (depth > 0)
    if (this.#at > this.#text.length) throw new SyntaxViolation()
    if (quotes % 2 === 1) this.#isIntact = false
    this.#remarks += this.#text.slice(start, this.#at)
  }
}
