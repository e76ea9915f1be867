import type { Command } from 'commander'
import { examplesOf } from './examples.ts'

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
      commands: group.commands.map((command) => describe(command, `${group.name()} `)),
    })),
    { name: null, description: 'the service itself', commands: single.map((command) => describe(command, '')) },
  ]
}

/** The reference as README carries it: a table for each group. */
export function formatReference(groups: readonly DescribedGroup[]): string {
  return groups.map(formatGroup).join('\n\n')
}

function describe(command: Command, prefix: string): DescribedCommand {
  const path = `${prefix}${command.name()}`
  const needed = fewestArguments(command, path)
  const words = command.registeredArguments.map((argument, index) =>
    index < needed ? ` <${argument.name()}>` : ` [${argument.name()}]`,
  )
  return {
    command: `${path}${words.join('')}`,
    description: command.description(),
    options: command.options.map(({ flags, description }) => ({ flags, description })),
    examples: examplesOf(command).map((example) => `billing-cli ${example}`),
  }
}

/** An argument that an example leaves out may be left out; the parser cannot tell, as on a terminal any that is missing is asked for. */
function fewestArguments(command: Command, path: string): number {
  const counts = examplesOf(command).map((example) => {
    const [before = ''] = example.slice(path.length).split(/ [->]/)
    return before.trim() === '' ? 0 : before.trim().split(' ').length
  })
  return Math.min(...counts)
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
