import type { Command } from 'commander'
import { examplesOf, neededArguments, pathOf } from './examples.ts'

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
