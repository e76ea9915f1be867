export type Colour = 'green' | 'yellow' | 'red' | 'gray'

/** Text that a table shows in colour, on a terminal that supports colours. */
export class Coloured {
  readonly text: string
  readonly colour: Colour

  constructor(text: string, colour: Colour) {
    this.text = text
    this.colour = colour
  }
}
