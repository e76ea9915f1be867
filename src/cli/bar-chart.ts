export interface Bar {
  readonly label: string
  /** Its share of the greatest value is the bar's length; negative ones are drawn as nothing. */
  readonly value: number
  /** What stands behind the bar. */
  readonly text: string
}

/** A bar needs this much to be worth drawing. */
const LEAST_BAR = 8
const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

/** A line for each bar, as wide as the terminal at most; without bars where there is no room for them. */
export function formatBars(bars: readonly Bar[], width: number): string {
  const labels = Math.max(...bars.map(({ label }) => label.length))
  const texts = Math.max(...bars.map(({ text }) => text.length))
  const room = width - labels - texts - 4
  const greatest = Math.max(...bars.map(({ value }) => value), 1)
  return bars
    .map(({ label, value, text }) => {
      const bar = room < LEAST_BAR ? [] : [drawBar(value / greatest, room).padEnd(room)]
      return [label.padEnd(labels), ...bar, text.padStart(texts)].join('  ')
    })
    .join('\n')
}

/** Exact to an eighth of a column; what is more than nothing is seen. */
function drawBar(share: number, room: number): string {
  const eighths = share <= 0 ? 0 : Math.max(1, Math.round(share * room * 8))
  return '█'.repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? '')
}
