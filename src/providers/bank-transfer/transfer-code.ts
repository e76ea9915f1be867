import { randomInt } from 'node:crypto'

/**
 * A transfer code is `PG`, seven random characters and a checksum, such as `PG7KD4MXQ2`.
 *
 * The fixed letters are what tells it from an account number or a bank's reference: digits alone are never a code, and
 * neither is anything that happens to stand in a transfer's text. The alphabet has 31 characters, a prime number, so
 * that a sum with different weights modulo 31 changes with every mistyped character and every two that change places.
 */
const ALPHABET = '23456789ABCDEFGHJKMNPQRSTUVWXYZ'
const PREFIX = 'PG'
const RANDOM_CHARACTERS = 7
const CODE_LENGTH = PREFIX.length + RANDOM_CHARACTERS + 1
/** How many blanks or punctuation marks people and banks may put between two characters of a code. */
const LONGEST_GAP = 3

/** A new random code (2.7·10¹⁰ of them; the caller's unique key decides whether it is free). */
export function newTransferCode(): string {
  for (;;) {
    const random = Array.from({ length: RANDOM_CHARACTERS }, () => ALPHABET.charAt(randomInt(ALPHABET.length)))
    const covered = PREFIX + random.join('')
    const code = covered + checksumOf(covered)
    if (isTransferCode(code)) return code
  }
}

/** Whether the text is a code, written exactly as we write it. */
export function isTransferCode(text: string): boolean {
  // A second `PG` inside would let a search find two beginnings of one code.
  if (text.length !== CODE_LENGTH || text.lastIndexOf(PREFIX) !== 0) return false
  if (!Array.from(text).every((character) => ALPHABET.includes(character))) return false
  return checksumOf(text.slice(0, -1)) === text.slice(-1)
}

/**
 * Every different code in a transfer's text, in the order of appearance: in any case, with or without blanks and
 * punctuation, glued to whatever a bank puts before and after it. A code with a typo is not found.
 */
export function findTransferCodes(content: string): string[] {
  const characters = Array.from(foldLetters(content))
  const found = new Set<string>()
  for (let start = 0; start < characters.length; start += 1) {
    if (characters[start] !== PREFIX.charAt(0)) continue
    const candidate = readFrom(characters, start)
    if (isTransferCode(candidate)) found.add(candidate)
  }
  return [...found]
}

/** As many letters and digits from `start` on as a code has, gaps left out; fewer where the text or a gap ends it. */
function readFrom(characters: readonly string[], start: number): string {
  let code = ''
  let gap = 0
  for (let index = start; index < characters.length && code.length < CODE_LENGTH && gap <= LONGEST_GAP; index += 1) {
    const character = characters[index] as string
    if (/[0-9A-Z]/.test(character)) {
      code += character
      gap = 0
    } else if (/[\s\p{P}\p{S}]/u.test(character)) {
      gap += 1
    } else {
      return code
    }
  }
  return code
}

/** Upper-case letters without accents: banks and keyboards change both. */
function foldLetters(content: string): string {
  return content.normalize('NFKD').replace(/\p{M}/gu, '').replace(/[đĐ]/g, 'D').toUpperCase()
}

function checksumOf(text: string): string {
  let sum = 0
  // Weights 1, 2, 3 … are all different and none is a multiple of 31: no single change and no swap leaves the sum.
  for (let index = 0; index < text.length; index += 1) sum += (index + 1) * ALPHABET.indexOf(text.charAt(index))
  return ALPHABET.charAt(sum % ALPHABET.length)
}
