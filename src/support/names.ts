/** A name of one letter would find nearly everybody. */
const MIN_LETTERS = 2
const MAX_NAME = 191

/** A text without case, diacritics and double blanks: `Đặng Thị  Lan` is `dang thi lan`, composed or not. */
export function foldName(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replaceAll('đ', 'd')
    .replace(/\s+/g, ' ')
    .trim()
}

/** The words of a text that may be part of a name; empty if it cannot be one. */
export function wordsOfName(text: string): string[] {
  const folded = foldName(text)
  const letters = folded.match(/\p{L}/gu)?.length ?? 0
  return letters < MIN_LETTERS || folded.length > MAX_NAME || /[@/]/.test(folded) ? [] : folded.split(' ')
}
