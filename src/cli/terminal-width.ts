const USUAL_WIDTH = 80
/** Narrower terminals get lines of this width, too. */
const MIN_WIDTH = 40

/** In columns; 80 if the output is no terminal, or the terminal does not know its width. */
export function terminalWidth({ isTTY, columns }: NodeJS.WriteStream = process.stdout): number {
  return Math.max(MIN_WIDTH, (isTTY ? columns : 0) || USUAL_WIDTH)
}
