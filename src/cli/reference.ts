import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { examplesOf, neededArguments, pathOf } from './examples.ts'
import { permissionOf, type Effect } from './permissions.ts'
import type { Role } from '#operators/role.ts'

export interface DescribedCommand {
  /** With its arguments, those in brackets may be left out: `reminders plan [app]`. */
  readonly command: string
  readonly description: string
  readonly options: readonly DescribedOption[]
  readonly examples: readonly string[]
}

export interface DescribedOption {
  readonly flags: string
  readonly description: string
}

/** The commands of a group, or of the service itself where `name` is null. */
export interface DescribedGroup {
  readonly name: string | null
  readonly description: string
  readonly commands: readonly DescribedCommand[]
}

/** Every command of the tree, by group; those without one come last. */
export function describeCommands(program: Command): DescribedGroup[] {
  const groups = program.commands.filter(({ commands }) => commands.length > 0)
  const single = program.commands.filter(({ commands }) => commands.length === 0)
  return [
    ...groups.map((group) => ({
      name: group.name(),
      description: group.description(),
      commands: group.commands.map(describe),
    })),
    { name: null, description: 'the service itself', commands: single.map(describe) },
  ]
}

/** The reference as docs/cli.md carries it: a table for each group. */
export function formatReference(groups: readonly DescribedGroup[]): string {
  return groups.map(formatGroup).join('\n\n')
}

function describe(command: Command): DescribedCommand {
  const needed = neededArguments(command)
  const words = command.registeredArguments.map((argument, index) =>
    index < needed ? ` <${argument.name()}>` : ` [${argument.name()}]`,
  )
  return {
    command: `${pathOf(command)}${words.join('')}`,
    description: command.description(),
    options: command.options.map(({ flags, description }) => ({ flags, description })),
    examples: examplesOf(command).map((example) => `billing-cli ${example}`),
  }
}

function formatGroup({ name, description, commands }: DescribedGroup): string {
  const title = name === null ? `**${description}**` : `**\`${name}\`**: ${description}`
  const rows = commands.map(({ command, description: does, options, examples }) => {
    const flags = options.map((option) => code(option.flags)).join(' ')
    const first = examples[0]
    return `| ${code(command)} | ${escape(does)} | ${flags} | ${first === undefined ? '' : code(first)} |`
  })
  return [title, '', '| command | what it does | options | example |', '|---|---|---|---|', ...rows].join('\n')
}

function code(text: string): string {
  return `\`${escape(text)}\``
}

/** A bar would end the cell, in code as well. */
function escape(text: string): string {
  return text.replaceAll('|', '\\|')
}

/** What `--json` of each command prints, as JSON schemas; the tests of the commands check and record them. */
export const OUTPUTS_FILE = join(import.meta.dirname, 'outputs.json')

/** Of `as`. */
const OF_ANOTHER = { description: 'what the command prints that the line of ssh names' }

/** A command for programs that choose one. */
export interface MappedCommand {
  readonly command: string
  readonly arguments: readonly { readonly name: string; readonly required: boolean }[]
  readonly options: readonly MappedOption[]
  readonly effect: Effect
  /** The least role that may run it. */
  readonly role: Role
  /** A JSON schema of what it prints with `--json`. */
  readonly output: object
}

interface MappedOption extends DescribedOption {
  readonly name: string
  readonly takes_value: boolean
}

/** Every command of the tree, as a program needs it. */
export function mapCommands(program: Command): MappedCommand[] {
  const outputs = JSON.parse(readFileSync(OUTPUTS_FILE, 'utf8')) as Readonly<Record<string, object>>
  return leavesOf(program).map((command) => {
    const path = pathOf(command)
    const { effect, role } = permissionOf(path)
    return { command: path, ...formOf(command), effect, role, output: outputs[path] ?? OF_ANOTHER }
  })
}

function formOf(command: Command): Pick<MappedCommand, 'arguments' | 'options'> {
  const needed = neededArguments(command)
  return {
    arguments: command.registeredArguments.map((each, index) => ({ name: each.name(), required: index < needed })),
    options: command.options.map(({ flags, description, long, required, optional }) => ({
      name: long ?? flags,
      flags,
      description,
      takes_value: required || optional,
    })),
  }
}

function leavesOf(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap((child) => leavesOf(child))
}
