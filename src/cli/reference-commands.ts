import type { Command } from 'commander'
import { withExamples } from './examples.ts'
import { outputOf } from './session.ts'
import { UsageError } from './usage-error.ts'

/** `docs` and `completion`: the command line's own reference. `wholeProgram` loads every command. */
export function registerReferenceCommands(program: Command, wholeProgram: () => Promise<Command>): void {
  const docs = program
    .command('docs')
    .description('the reference of all commands, as Markdown')
    .action(async (_options: object, command: Command) => {
      const { describeCommands, formatReference, mapCommands } = await import('./reference.ts')
      const out = await outputOf(command)
      const program = await wholeProgram()
      out.result(mapCommands(program), () => out.lines(formatReference(describeCommands(program))))
    })
  withExamples(docs, 'docs', 'docs --json')
  const completion = program
    .command('completion <shell>')
    .description('print a completion script for bash, zsh or fish')
    .action(async (named: string, _options: object, command: Command) => {
      const { COMPLETION_SCRIPTS, SHELLS } = await import('./shells.ts')
      const shell = SHELLS.find((each) => each === named)
      if (shell === undefined) throw new UsageError('<shell> must be bash, zsh or fish')
      const script = COMPLETION_SCRIPTS[shell]
      const out = await outputOf(command)
      out.result({ shell, script }, () => out.lines(script))
    })
  withExamples(
    completion,
    'completion bash > /etc/bash_completion.d/billing-cli',
    'completion zsh > ~/.billing-cli.zsh',
    'completion fish > ~/.config/fish/completions/billing-cli.fish',
  )
}
