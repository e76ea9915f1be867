/** Where the output is no terminal, and the least that is asked of one. */
const USUAL_WIDTH = 80
const MIN_WIDTH = 40

/** Of standard output, or 80. */
export function terminalWidth(): number {
  return Math.max(MIN_WIDTH, (process.stdout.isTTY ? process.stdout.columns : 0) || USUAL_WIDTH)
}
