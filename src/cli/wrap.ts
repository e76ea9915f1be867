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
