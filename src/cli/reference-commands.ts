import type { Command } from 'commander'
import { requiredWord } from './ask.ts'
import type { Commands } from './declaration.ts'

/** `docs` and `completion`: the command line's own reference. `wholeProgram` loads every command. */
export const commandsFor = (wholeProgram: () => Promise<Command>): Commands => ({
  docs: {
    examples: ['docs', 'docs --json'],
    async print(out) {
      const { describeCommands, formatReference, mapCommands } = await import('./reference.ts')
      const program = await wholeProgram()
      out.result(mapCommands(program), () => out.lines(formatReference(describeCommands(program))))
    },
  },
  'completion [shell]': {
    examples: [
      'completion bash > /etc/bash_completion.d/billing-cli',
      'completion zsh > ~/.billing-cli.zsh',
      'completion fish > ~/.config/fish/completions/billing-cli.fish',
    ],
    async print(out, [named]) {
      const { COMPLETION_SCRIPTS, SHELLS } = await import('./shells.ts')
      const shell = await requiredWord(
        named,
        '<shell>',
        'Of which shell?',
        SHELLS.map((value) => ({ value, name: value })),
      )
      const script = COMPLETION_SCRIPTS[shell]
      out.result({ shell, script }, () => out.lines(script))
    },
  },
})
