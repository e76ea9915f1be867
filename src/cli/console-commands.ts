import { isDumbTerminal } from '#config.ts'
import { isTerminal } from './ask.ts'
import type { Commands, Flags, Texts } from './declaration.ts'
import { printReview } from './review-commands.ts'
import { UsageError } from './usage-error.ts'

type Options = Flags<'write' | 'once'> & Texts<'app'>

/** `console`: the review queue on a whole screen. */
export const commands: Commands = {
  console: {
    options: [
      ['--write', 'also confirm what is decided; without it the console only reads'],
      ['--app <app>', 'only of this app'],
      ['--once', 'print the queue, as review does'],
    ],
    examples: ['console', 'console --write', 'console --once --json'],
    refuse(_args, { once }: Options) {
      if (once) return
      if (!isTerminal() || !process.stdout.isTTY)
        throw new UsageError('console needs a terminal; elsewhere use console --once --json')
      if (isDumbTerminal())
        throw new UsageError('console needs a terminal that can move its cursor, and TERM is dumb: use review')
    },
    async run(session, _args, { write, once, app }: Options) {
      if (once) return printReview(session, app)
      const { runConsole } = await import('./console/run.ts')
      const appId = app === undefined ? null : (await session.app(app)).id
      await runConsole(session, { writes: write === true, appId })
    },
  },
}
