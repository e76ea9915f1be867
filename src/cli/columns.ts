import stringWidth from 'string-width'

// Made for the first text that needs it: making it takes a twentieth of the time of a command.
let segmenter: Intl.Segmenter | undefined
const PLAIN = /^[\x20-\x7e]*$/

/** The characters as a reader counts them: a letter with its accents is one, and so is a flag. */
export function charactersOf(text: string): string[] {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  return [...segmenter.segment(text)].map(({ segment }) => segment)
}

/** How many columns of a terminal the text takes, as `cli-table3` counts them: it cuts what is wider than its column. */
export function columnsOf(text: string): number {
  return PLAIN.test(text) ? text.length : stringWidth(text)
}

/** The text in exactly `columns` columns: filled up with blanks, or cut with `…`. */
export function fitted(text: string, columns: number): string {
  const own = columnsOf(text)
  if (own <= columns) return text + ' '.repeat(columns - own)
  let kept = ''
  for (const character of charactersOf(text)) {
    if (columnsOf(`${kept}${character}…`) > columns) break
    kept += character
  }
  return `${kept}…${' '.repeat(Math.max(0, columns - columnsOf(`${kept}…`)))}`
}

/** As `fitted`, with the blanks in front. */
export function fittedRight(text: string, columns: number): string {
  const own = columnsOf(text)
  return own <= columns ? ' '.repeat(columns - own) + text : fitted(text, columns)
}
