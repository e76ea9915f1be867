import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openApiOf } from '#reference/openapi.ts'
import { referenceOf } from '#reference/markdown.ts'
import { API_ROUTES } from '#daemon/app.ts'
import { createProgram } from '#cli/program.ts'
import { formatPermissions } from '#cli/permissions.ts'
import { manPages } from '#cli/man-page.ts'
import { describeCommands, formatReference } from '#cli/reference.ts'
import { clientTypes } from './client-types.ts'
import { mailHtmls } from './mail-html.ts'

/** What a program writes into a file: all of it, or the part between `<!-- name:start -->` and `<!-- name:end -->`. */
interface GeneratedPart {
  readonly name: string
  /** From the root of the project. */
  readonly file: string
  readonly isWhole?: true
  readonly render: () => string | Promise<string>
}

const ROOT = join(import.meta.dirname, '..')
const EXAMPLE_SERVER = 'https://billing.example.com'
const MEASUREMENTS = 'bench/results.md'
/** The rows of the measurements that the README quotes. */
const QUOTED = ['read', 'checkout', 'payment', 'webhooks', 'reminders', 'ready', 'memory', 'cli-command']

const program = await createProgram()
const commands = describeCommands(program)

export const GENERATED: readonly GeneratedPart[] = [
  {
    name: 'api',
    file: 'docs/api.md',
    render: () => Promise.resolve(referenceOf(openApiOf(API_ROUTES, EXAMPLE_SERVER))),
  },
  { name: 'cli', file: 'docs/cli.md', render: () => formatReference(commands) },
  { name: 'roles', file: 'docs/operators.md', render: () => formatPermissions() },
  {
    name: 'types of the client',
    file: 'client/src/types.ts',
    isWhole: true,
    render: () => clientTypes(openApiOf(API_ROUTES, EXAMPLE_SERVER)),
  },
  ...manPages(commands, program.options).map(({ file, text }): GeneratedPart => ({
    name: file,
    file: `man/${file}`,
    isWhole: true,
    render: () => text,
  })),
  ...mailHtmls().map(({ file, render }): GeneratedPart => ({ name: file, file, isWhole: true, render })),
  { name: 'measurements', file: 'README.md', render: () => quoteMeasurements(read(MEASUREMENTS)) },
]

/** The text of a part's file with the part put in; throws where its marks are not there. */
export async function withPart({ name, file, isWhole, render }: GeneratedPart): Promise<string> {
  if (isWhole) return render()
  const text = read(file)
  const [start, end] = [`<!-- ${name}:start -->\n`, `<!-- ${name}:end -->`]
  const [from, to] = [text.indexOf(start), text.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`${file} has no marks of “${name}”`)
  return `${text.slice(0, from + start.length)}${await render()}\n${text.slice(to)}`
}

/** Writes every part into its file. */
export async function generateAll(): Promise<void> {
  for (const part of GENERATED) writeFileSync(join(ROOT, part.file), await withPart(part))
}

/** A short table of the medians, and what they were measured on. */
function quoteMeasurements(report: string): string {
  const [head = [], , ...rows] = report
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
  const quoted = QUOTED.map((name) => {
    const row = rows.find(([first]) => first === name)
    if (!row) throw new Error(`${MEASUREMENTS} has no row “${name}”`)
    return (column: string): string => row[head.indexOf(column)] ?? ''
  })
  const median = (cell: string): string => cell.replace(/ \(.*?\)/, '')
  const lines = quoted.map((cell) => {
    const values = ['ours', 'floor', 'ours by floor'].map((column) => median(cell(column)))
    return `| ${[cell('what'), ...values].join(' | ')} |`
  })
  const machines = new Set(
    quoted.map((cell) =>
      cell('machine')
        .replace(/ load [^,]+,/, '')
        .replace(/ [\d:]+$/, ''),
    ),
  )
  return [
    '| what | Paygate | floor | by floor |',
    '|---|---|---|---|',
    ...lines,
    '',
    `Measured on: ${[...machines].join('; ')}.`,
  ].join('\n')
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

if (import.meta.main) await generateAll()
