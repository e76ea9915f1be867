import { randomInt } from 'node:crypto'

/**
 * A transfer code is `PG`, seven random characters and a checksum, such as `PG7KD4MXQT`.
 *
 * The fixed letters distinguish it from an account number or a bank's reference. The alphabet has 31 characters, a prime
 * number, so that the weighted sum modulo 31 changes with every mistyped character and every two that change places.
 */
const ALPHABET = '23456789ABCDEFGHJKMNPQRSTUVWXYZ'
const PREFIX = 'PG'
const RANDOM_CHARACTERS = 7
const CODE_LENGTH = PREFIX.length + RANDOM_CHARACTERS + 1
/** The most blanks or punctuation marks between two characters of a code. */
const MAX_GAP = 3

/** A new random code (of 2.7·10¹⁰; the caller's unique key decides whether it is free). */
export function newTransferCode(): string {
  for (;;) {
    const random = Array.from({ length: RANDOM_CHARACTERS }, () => ALPHABET.charAt(randomInt(ALPHABET.length)))
    const covered = PREFIX + random.join('')
    const code = covered + checksumOf(covered)
    if (isTransferCode(code)) return code
  }
}

/** Whether the text is a code in our own spelling. */
export function isTransferCode(text: string): boolean {
  // With a second `PG` inside, a search would find two starts in one code.
  if (text.length !== CODE_LENGTH || text.lastIndexOf(PREFIX) !== 0) return false
  if (!Array.from(text).every((character) => ALPHABET.includes(character))) return false
  return checksumOf(text.slice(0, -1)) === text.slice(-1)
}

/**
 * The distinct codes in a transfer's text, in order: in any case, with or without blanks and punctuation, even directly next to text that a
 * bank adds. A code with a typo is not found.
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

/**
 * The codes that a text with one typo may mean: one character wrong, missing or too many, or two that changed places. The checksum leaves
 * few of them.
 */
export function nearTransferCodes(text: string): string[] {
  const typed = foldLetters(text).replace(/[^0-9A-Z]/g, '')
  if (Math.abs(typed.length - CODE_LENGTH) > 1) return []
  const places = Array.from(
    { length: typed.length + 1 },
    (_, index) => [typed.slice(0, index), typed.slice(index)] as const,
  )
  const candidates = places.flatMap(([before, [next = '', afterNext = '', ...rest]]) => {
    const tail = rest.join('')
    const replaced = Array.from(ALPHABET).flatMap((character) => [
      before + character + afterNext + tail,
      before + character + next + afterNext + tail,
    ])
    return [...replaced, before + afterNext + tail, before + afterNext + next + tail]
  })
  return [...new Set(candidates)].filter((code) => code !== typed && isTransferCode(code))
}

/** The letters and digits from `start` on, without gaps, up to the length of a code; fewer if the text ends or a gap is too long. */
function readFrom(characters: readonly string[], start: number): string {
  let code = ''
  let gap = 0
  for (let index = start; index < characters.length && code.length < CODE_LENGTH && gap <= MAX_GAP; index += 1) {
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

/** Upper-case letters without accents, since banks and keyboards change both. */
function foldLetters(content: string): string {
  return content.normalize('NFKD').replace(/\p{M}/gu, '').replace(/[đĐ]/g, 'D').toUpperCase()
}

function checksumOf(text: string): string {
  let sum = 0
  // The weights 1, 2, 3 … differ and none is a multiple of 31, so every single change and every swap changes the sum.
  for (let index = 0; index < text.length; index += 1) sum += (index + 1) * ALPHABET.indexOf(text.charAt(index))
  return ALPHABET.charAt(sum % ALPHABET.length)
}
