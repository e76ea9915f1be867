/** Where the output is no terminal, and the least that is asked of one. */
const USUAL_WIDTH = 80
const MIN_WIDTH = 40

/** In columns, or 80 where the terminal does not know its own. */
export function terminalWidth({ isTTY, columns }: NodeJS.WriteStream = process.stdout): number {
  return Math.max(MIN_WIDTH, (isTTY ? columns : 0) || USUAL_WIDTH)
}
