import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createProgram } from '#cli/program.ts'
import { describeCommands, formatReference } from '#cli/reference.ts'

/** A part of the documentation that a program writes, between `<!-- name:start -->` and `<!-- name:end -->`. */
interface GeneratedPart {
  readonly name: string
  /** From the root of the project. */
  readonly file: string
  readonly render: () => Promise<string>
}

const ROOT = join(import.meta.dirname, '..')

export const GENERATED: readonly GeneratedPart[] = [
  { name: 'cli', file: 'docs/cli.md', render: async () => formatReference(describeCommands(await createProgram())) },
]

/** The text of a part's file with the part put in; throws where its marks are not there. */
export async function withPart({ name, file, render }: GeneratedPart): Promise<string> {
  const text = readFileSync(join(ROOT, file), 'utf8')
  const [start, end] = [`<!-- ${name}:start -->\n`, `<!-- ${name}:end -->`]
  const [from, to] = [text.indexOf(start), text.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`${file} has no marks of “${name}”`)
  return `${text.slice(0, from + start.length)}${await render()}\n${text.slice(to)}`
}

if (import.meta.main) for (const part of GENERATED) writeFileSync(join(ROOT, part.file), await withPart(part))
