import { valuesOf, withoutComments, type HeaderField } from './header-fields.ts'

export interface MailAddress {
  readonly localPart: string
  /** In lower case. */
  readonly domain: string
}

/**
 * The address of a `From` that has exactly one, in a plain form: `name <local@domain>` or `local@domain`. Null for groups,
 * lists, routes, quoted local parts, encoded addresses and names with an `@` outside quotes: banks do not write them, and
 * programs disagree about their author.
 */
export function readSoleAddress(value: string): MailAddress | null {
  const bare = value.length <= MAX_FIELD_LENGTH ? withoutComments(value)?.trim() : undefined
  if (bare === undefined) return null
  const address = BRACKETED.exec(bare)?.[1] ?? PLAIN.exec(bare)?.[0]
  if (address === undefined) return null
  const at = address.lastIndexOf('@')
  return { localPart: address.slice(0, at), domain: address.slice(at + 1).toLowerCase() }
}

/** The address of the one field of this name (lower case); null if there are several or none, or as `readSoleAddress`. */
export function soleAddressIn(fields: readonly HeaderField[], name: string): MailAddress | null {
  const [value, ...others] = valuesOf(fields, name)
  return value === undefined || others.length > 0 ? null : readSoleAddress(value)
}

/** Longer than any real one, short enough for every pattern below. */
const MAX_FIELD_LENGTH = 1000

const WORD_CHARACTER = String.raw`[ \t!#$%&'*+\-./0-9=?A-Z^_\x60a-z{|}~\x80-\xff]`
const QUOTED = String.raw`"(?:[^"\\\0\r\n]|\\[\t\x20-\x7e])*"`
const PHRASE = String.raw`(?:${WORD_CHARACTER}|${QUOTED})+`
const ATOM = String.raw`[!#$%&'*+\-/0-9=?A-Z^_\x60a-z{|}~]+`
const LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?'
const ADDRESS = String.raw`${ATOM}(?:\.${ATOM})*@${LABEL}(?:\.${LABEL})+`
const BRACKETED = new RegExp(`^(?:${PHRASE})?<(${ADDRESS})>$`)
const PLAIN = new RegExp(`^${ADDRESS}$`)
