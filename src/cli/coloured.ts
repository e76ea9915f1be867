export type Colour = 'green' | 'yellow' | 'red' | 'gray'

/** What a table shows in colour, where the terminal wants colours. */
export class Coloured {
  readonly text: string
  readonly colour: Colour

  constructor(text: string, colour: Colour) {
    this.text = text
    this.colour = colour
  }
}
