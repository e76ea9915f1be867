import type { Command } from 'commander'
import { terminalWidth } from './terminal-width.ts'
import { wrapCommand } from './wrap-lines.ts'

const EXAMPLES = new WeakMap<Command, readonly string[]>()

/** Adds examples to a command's `--help`; each begins with what follows `billing-cli`. */
export function withExamples(command: Command, examples: readonly string[]): Command {
  EXAMPLES.set(command, examples)
  return command.addHelpText('after', () => {
    const lines = examples.map((example) => wrapCommand(`  $ billing-cli ${example}`, terminalWidth()))
    return `\nExamples:\n${lines.join('\n')}`
  })
}

/**
 * How many of a command's arguments are required: those that no example omits. The parser does not know, because on a terminal the command
 * asks for whatever is missing.
 */
export function neededArguments(command: Command): number {
  const counts = examplesOf(command).map((example) => {
    const [before = ''] = example.slice(pathOf(command).length).split(/ [->]/)
    return before.trim() === '' ? 0 : before.trim().split(' ').length
  })
  return Math.min(...counts)
}

/** `app create`: a command's words behind the program's name. */
export function pathOf(command: Command): string {
  const words: string[] = []
  for (let each = command; each.parent; each = each.parent) words.unshift(each.name())
  return words.join(' ')
}

/** The examples of a command's `--help`. */
export function examplesOf(command: Command): readonly string[] {
  return EXAMPLES.get(command) ?? []
}
