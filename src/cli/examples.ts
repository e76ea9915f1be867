import type { Command } from 'commander'

const EXAMPLES = new WeakMap<Command, readonly string[]>()

/** Adds examples to a command's `--help`; each begins with what follows `billing-cli`. */
export function withExamples(command: Command, ...examples: readonly string[]): Command {
  EXAMPLES.set(command, examples)
  return command.addHelpText(
    'after',
    `\nExamples:\n${examples.map((example) => `  $ billing-cli ${example}`).join('\n')}`,
  )
}

/** The examples of a command's `--help`. */
export function examplesOf(command: Command): readonly string[] {
  return EXAMPLES.get(command) ?? []
}
