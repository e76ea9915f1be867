import type { Shown } from '../cli/shown.ts'

/** What a line that is typed into a shell prints. */
type Printed<Line extends string> = `${Line} ` extends `${infer First} ${infer Second} ${string}`
  ? Shown<First, Second>
  : Shown<Line>

/** `billing-cli` elsewhere, by what runs a line of it there: it runs with `--json`, and what it prints is returned. */
export const jsonCli =
  (run: (words: string) => Promise<string>) =>
  async <Line extends string>(line: Line): Promise<Printed<Line>> =>
    JSON.parse(await run(`${line} --json`)) as Printed<Line>
