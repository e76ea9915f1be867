export interface Bar {
  readonly label: string
  /** Determines the length of the bar, relative to the greatest value. Negative values have no bar. */
  readonly value: number
  /** Printed after the bar. */
  readonly text: string
}

/** In columns. Shorter bars are not worth drawing. */
const MIN_BAR = 8
const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

/** A line for each bar, at most `width` columns wide. Where there is no room for bars, the lines have none. */
export function formatBars(bars: readonly Bar[], width: number): string {
  const labels = Math.max(...bars.map(({ label }) => label.length))
  const texts = Math.max(...bars.map(({ text }) => text.length))
  const room = width - labels - texts - 4
  const greatest = Math.max(...bars.map(({ value }) => value), 1)
  return bars
    .map(({ label, value, text }) => {
      const bar = room < MIN_BAR ? [] : [drawBar(value / greatest, room).padEnd(room)]
      return [label.padEnd(labels), ...bar, text.padStart(texts)].join('  ').trimEnd()
    })
    .join('\n')
}

/** To the eighth of a column; a positive share is always visible. */
function drawBar(share: number, room: number): string {
  const eighths = share <= 0 ? 0 : Math.max(1, Math.round(share * room * 8))
  return '█'.repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? '')
}
