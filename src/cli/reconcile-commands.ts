import type { Command } from 'commander'
import { withExamples } from './examples.ts'
import { inSession } from './session.ts'

/** `reconcile`: asks the providers about payments that are pending. */
export function registerReconcileCommands(program: Command): void {
  const reconcile = program
    .command('reconcile')
    .description('look up pending payments at their providers now')
    .option('--app <app>', 'only of this app')
    .action(async (options: { app?: string }, command: Command) => {
      await inSession(command, async ({ ctx, out, app: pick }) => {
        const { reconcilePayments } = await import('#providers/engine/reconcile-payments.ts')
        const appId = options.app === undefined ? {} : { appId: (await pick(options.app)).id }
        const counts = await reconcilePayments(ctx, { ...appId, all: true })
        const answer = {
          looked_up: counts.lookedUp,
          paid: counts.paid,
          closed: counts.closed,
          still_open: counts.stillOpen,
          failed: counts.failed,
        }
        out.result(answer, () => {
          out.line(
            `${counts.lookedUp} looked up: ${counts.paid} paid, ${counts.closed} closed, ${counts.stillOpen} still open, ${counts.failed} without answer`,
          )
        })
        if (counts.failed > 0) process.exitCode = 1
      })
    })
  withExamples(reconcile, 'reconcile', 'reconcile --app 1')
}
