import xterm from '@xterm/headless'

// The package is CommonJS.
const { Terminal } = xterm

/** A part of a line in one style. `colour` is one of the 16: 1 red, 2 green, 3 yellow, 8 gray; null is the terminal's default. */
export interface Span {
  readonly text: string
  readonly bold: boolean
  readonly dim: boolean
  readonly inverse: boolean
  readonly colour: number | null
}

/** A line as a terminal shows it. */
export interface ShownLine {
  readonly text: string
  readonly spans: readonly Span[]
}

/** The lines that a terminal of this size shows after a program has written `raw`, with those that have scrolled away on top. */
export async function shownOn(columns: number, raw: string, rows = 200): Promise<ShownLine[]> {
  const terminal = new Terminal({ cols: columns, rows, scrollback: 10_000, allowProposedApi: true })
  await new Promise<void>((resolve) => terminal.write(raw, resolve))
  const { active } = terminal.buffer
  const lines = Array.from({ length: active.length }, (_, row): ShownLine => {
    const line = active.getLine(row)
    const text = line?.translateToString(true) ?? ''
    const spans: Span[] = []
    for (let column = 0; column < text.length; column += 1) {
      const cell = line?.getCell(column)
      if (!cell) break
      const style = {
        bold: cell.isBold() !== 0,
        dim: cell.isDim() !== 0,
        inverse: cell.isInverse() !== 0,
        colour: cell.isFgPalette() ? cell.getFgColor() : null,
      }
      const last = spans.at(-1)
      const isSameStyle = last && Object.entries(style).every(([name, value]) => last[name as keyof Span] === value)
      const chars = cell.getChars() || (cell.getWidth() === 0 ? '' : ' ')
      if (isSameStyle) spans[spans.length - 1] = { ...last, text: last.text + chars }
      else spans.push({ text: chars, ...style })
    }
    return { text, spans }
  })
  terminal.dispose()
  return lines
}

/** The bold part of a line. */
export function boldOf({ spans }: ShownLine): string {
  return spans.map(({ text, bold }) => (bold ? text : '')).join('')
}

const CSS: Readonly<Record<number, string>> = { 1: '#f14c4c', 2: '#23d18b', 3: '#e5e510', 4: '#3b8eea', 8: '#888' }

/** The lines as an HTML page, for a screenshot. */
export function pageOf(title: string, lines: readonly ShownLine[]): string {
  const escape = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  const body = lines.map(({ spans }) => spans.map((span) => htmlOf(span, escape)).join('')).join('\n')
  return `<!doctype html><meta charset="utf-8"><title>${escape(title)}</title>
<pre style="display:inline-block;background:#1e1e1e;color:#ddd;padding:12px;font:14px/1.25 monospace">${body}</pre>`
}

function htmlOf({ text, bold, dim, inverse, colour }: Span, escape: (text: string) => string): string {
  const rules = [
    bold ? 'font-weight:bold' : '',
    dim ? 'opacity:.6' : '',
    inverse ? 'background:#ddd;color:#1e1e1e' : '',
    colour === null ? '' : `color:${CSS[colour] ?? '#ddd'}`,
  ].filter((rule) => rule !== '')
  return rules.length === 0 ? escape(text) : `<span style="${rules.join(';')}">${escape(text)}</span>`
}
