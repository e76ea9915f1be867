/** Characters that take two columns: East Asian wide ones and emoji. */
const WIDE =
  /^(?:[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6]|[\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}])/u
const CHARACTERS = new Intl.Segmenter('en', { granularity: 'grapheme' })

function charactersOf(text: string): string[] {
  return [...CHARACTERS.segment(text)].map(({ segment }) => segment)
}

/** How many columns of a terminal the text takes. */
export function columnsOf(text: string): number {
  return charactersOf(text).reduce((sum, character) => sum + (WIDE.test(character) ? 2 : 1), 0)
}

/** The text in exactly `columns` columns: filled up with blanks, or cut with `…`. */
export function fitted(text: string, columns: number): string {
  const own = columnsOf(text)
  if (own <= columns) return text + ' '.repeat(columns - own)
  let kept = ''
  let used = 0
  for (const character of charactersOf(text)) {
    const width = WIDE.test(character) ? 2 : 1
    if (used + width > columns - 1) break
    kept += character
    used += width
  }
  return `${kept}…${' '.repeat(Math.max(0, columns - used - 1))}`
}

/** As `fitted`, with the blanks in front. */
export function fittedRight(text: string, columns: number): string {
  const own = columnsOf(text)
  return own <= columns ? ' '.repeat(columns - own) + text : fitted(text, columns)
}
