import type { Command } from 'commander'
import { inChange, withDryRun } from './change.ts'
import { withExamples } from './examples.ts'

/** `key …`: the keys that secrets are encrypted with. */
export function registerKeyCommands(program: Command): void {
  const rotate = program
    .command('key')
    .description('the keys that secrets are encrypted with')
    .command('rotate')
    .description('re-encrypt every secret under the first key of BILLING_ENCRYPTION_KEYS; may be run again at any time')
    .action(async (_options: object, command: Command) => {
      await inChange(command, async ({ ctx, out, caller }) => {
        const { rotateKeys } = await import('#upkeep/rotate-keys.ts')
        const report = await rotateKeys(ctx, caller, {
          onProgress: ({ rotated, already_current }) =>
            out.progress(`${rotated} rotated, ${already_current} were already under "${ctx.keyring.currentId}"`),
        })
        out.result(report, () => {
          out.line(`${report.rotated} secrets rotated, ${report.already_current} already under the first key`)
        })
      })
    })
  withDryRun(rotate)
  withExamples(rotate, 'key rotate', 'key rotate --json')
}
