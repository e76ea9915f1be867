import { isDumbTerminal } from '#config/environment.ts'
import { isTerminal } from './ask.ts'
import { APP, type Commands, type Flags, type Texts } from './declaration.ts'
import { commands as reviewing } from './review-commands.ts'
import { UsageError } from './usage-error.ts'

type Options = Flags<'write' | 'once'> & Texts<'app'>

/** `console`: the review queue on a whole screen. */
export const commands: Commands = {
  console: {
    options: [
      ['--write', 'also confirm what is decided; without it the console only reads'],
      APP,
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
    async run(session, args, options: Options) {
      const { write, once, app } = options
      if (once) return reviewing.review.run(session, args, options)
      const { runConsole } = await import('./console/run.ts')
      const appId = app === undefined ? null : (await session.pickApp(app)).id
      await runConsole(session, { writes: write === true, appId })
    },
  },
}
