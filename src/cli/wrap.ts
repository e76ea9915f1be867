import { charactersOf, columnsOf } from './columns.ts'

/**
 * A blank between two words, but for those within a timestamp, `2026-12-21 20:42 UTC`, before the id of an app, `[TEST] 21`, and before
 * the `of` of `₫90,000 of ₫99,000`.
 */
const BETWEEN_WORDS = / (?!(?<=\d{4}-\d\d-\d\d )\d\d:\d\d|(?<=\d\d:\d\d )UTC|(?<=\[(?:TEST|LIVE)\] )\d|(?<=\d )of )/
/** `bank_transfer`, `app.rotate-webhook-secret`: our own codes and names. What has digits may be an identifier, which is copied. */
const CODE = /^[a-z]+(?:[._-][a-z]+)+$/

/** The parts of a text that stay whole where it is broken into lines: its words, timestamps and marked ids. */
export function unbreakable(text: string): string[] {
  return text.split(BETWEEN_WORDS)
}

/** The parts that stay whole where lines are so narrow that even codes are broken, after `_`, `.` and `-`. */
export function unbreakableCodes(text: string): string[] {
  return unbreakable(text).flatMap(partsOfCode)
}

function partsOfCode(word: string): string[] {
  return CODE.test(word) ? word.split(/(?<=[._-])/) : [word]
}

/**
 * Breaks the text into lines of at most `width` columns, between words. Longer words are broken, codes between their parts, others at the
 * end of the line.
 */
export function wrap(text: string, width: number): string {
  const lines: string[] = []
  let line = ''
  for (const word of unbreakable(text)) {
    const joined = line === '' ? word : `${line} ${word}`
    if (columnsOf(joined) <= width) {
      line = joined
      continue
    }
    if (line !== '') lines.push(line)
    const parts = chunksOf(word, width)
    line = parts.pop() ?? ''
    lines.push(...parts)
  }
  return [...lines, line].join('\n')
}

function chunksOf(word: string, width: number): string[] {
  const parts = partsOfCode(word).flatMap((part) =>
    columnsOf(part) <= width ? [part] : packed(charactersOf(part), width),
  )
  return packed(parts, width)
}

/** The parts put together as long as they fit the width. */
function packed(parts: readonly string[], width: number): string[] {
  const chunks: string[] = []
  for (const part of parts) {
    const joined = `${chunks.at(-1) ?? ''}${part}`
    if (chunks.length > 0 && columnsOf(joined) <= width) chunks.splice(-1, 1, joined)
    else chunks.push(part)
  }
  return chunks
}

/**
 * The text with lines of at most `width` columns, broken between words; a line that is broken keeps its indentation. A longer word
 * stays whole, so that an address or a command can be copied.
 */
export function wrapLines(text: string, width: number): string {
  return text
    .split('\n')
    .map((line) => (columnsOf(line) <= width ? line : breakLine(line, width)))
    .join('\n')
}

function breakLine(text: string, width: number): string {
  const indent = /^ */.exec(text)?.[0] ?? ''
  return joinWords(text.trimStart().split(' '), { width, indent, hanging: indent, end: '' })
}

const WORD_OF_A_SHELL = /(?:"[^"]*"|'[^']*'|[^\s"'])+/g

/**
 * A command line over several lines, as a shell reads it: with a backslash at the end of each, never within quotes, and with an option
 * beside its value.
 */
export function wrapCommand(command: string, width: number): string {
  const indent = /^ */.exec(command)?.[0] ?? ''
  if (command.length <= width) return command
  return joinWords(withValues(command.match(WORD_OF_A_SHELL) ?? []), {
    width,
    indent,
    hanging: `${indent}    `,
    end: ' \\',
  })
}

/** The words, an option and what follows it as one. */
function withValues(words: readonly string[]): string[] {
  return words.reduce<string[]>((parts, word, index) => {
    const isValue = !word.startsWith('-') && words[index - 1]?.startsWith('--') === true
    return isValue ? [...parts.slice(0, -1), `${parts.at(-1) ?? ''} ${word}`] : [...parts, word]
  }, [])
}

interface Breaks {
  readonly width: number
  /** Before the first line. */
  readonly indent: string
  /** Before all further lines. */
  readonly hanging: string
  /** After each line but the last. */
  readonly end: string
}

function joinWords(words: readonly string[], { width, indent, hanging, end }: Breaks): string {
  const lines: string[] = []
  let line = ''
  for (const word of words) {
    const joined = line === '' ? `${lines.length === 0 ? indent : hanging}${word}` : `${line} ${word}`
    if (line === '' || columnsOf(joined) + end.length <= width) {
      line = joined
      continue
    }
    lines.push(`${line}${end}`)
    line = `${hanging}${word}`
  }
  return [...lines, line].join('\n')
}
