import xterm from '@xterm/headless'

// The package is CommonJS.
const { Terminal } = xterm

/** A stretch of a line in one look. `colour`: of the sixteen, 1 red, 2 green, 3 yellow, 8 gray; null is the terminal's own. */
export interface Stretch {
  readonly text: string
  readonly bold: boolean
  readonly dim: boolean
  readonly inverse: boolean
  readonly colour: number | null
}

/** A line as a terminal shows it. */
export interface ShownLine {
  readonly text: string
  readonly stretches: readonly Stretch[]
}

/** What a terminal of this size shows in the end of what a program wrote, with the lines that have scrolled away on top. */
export async function shownOn(columns: number, raw: string, rows = 200): Promise<ShownLine[]> {
  const terminal = new Terminal({ cols: columns, rows, scrollback: 10_000, allowProposedApi: true })
  await new Promise<void>((resolve) => terminal.write(raw, resolve))
  const { active } = terminal.buffer
  const lines = Array.from({ length: active.length }, (_, row): ShownLine => {
    const line = active.getLine(row)
    const text = line?.translateToString(true) ?? ''
    const stretches: Stretch[] = []
    for (let column = 0; column < text.length; column += 1) {
      const cell = line?.getCell(column)
      if (!cell) break
      const look = {
        bold: cell.isBold() !== 0,
        dim: cell.isDim() !== 0,
        inverse: cell.isInverse() !== 0,
        colour: cell.isFgPalette() ? cell.getFgColor() : null,
      }
      const last = stretches.at(-1)
      const isSame = last && Object.entries(look).every(([name, value]) => last[name as keyof Stretch] === value)
      const chars = cell.getChars() || (cell.getWidth() === 0 ? '' : ' ')
      if (isSame) stretches[stretches.length - 1] = { ...last, text: last.text + chars }
      else stretches.push({ text: chars, ...look })
    }
    return { text, stretches }
  })
  terminal.dispose()
  return lines
}

/** The part of a line that is bold. */
export function boldOf({ stretches }: ShownLine): string {
  return stretches.map(({ text, bold }) => (bold ? text : '')).join('')
}

const CSS: Readonly<Record<number, string>> = { 1: '#f14c4c', 2: '#23d18b', 3: '#e5e510', 4: '#3b8eea', 8: '#888' }

/** The lines as a page: what a picture of a table is taken of. */
export function pageOf(title: string, lines: readonly ShownLine[]): string {
  const escape = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  const body = lines.map(({ stretches }) => stretches.map((stretch) => span(stretch, escape)).join('')).join('\n')
  return `<!doctype html><meta charset="utf-8"><title>${escape(title)}</title>
<pre style="display:inline-block;background:#1e1e1e;color:#ddd;padding:12px;font:14px/1.25 monospace">${body}</pre>`
}

function span({ text, bold, dim, inverse, colour }: Stretch, escape: (text: string) => string): string {
  const style = [
    bold ? 'font-weight:bold' : '',
    dim ? 'opacity:.6' : '',
    inverse ? 'background:#ddd;color:#1e1e1e' : '',
    colour === null ? '' : `color:${CSS[colour] ?? '#ddd'}`,
  ].filter((rule) => rule !== '')
  return style.length === 0 ? escape(text) : `<span style="${style.join(';')}">${escape(text)}</span>`
}
