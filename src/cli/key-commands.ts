import type { Commands } from './declaration.ts'

/** `key …`: the keys that secrets are encrypted with. */
export const commands: Commands = {
  'key rotate': {
    description: 're-encrypt every secret under the first key of BILLING_ENCRYPTION_KEYS; may be run again at any time',
    examples: ['key rotate', 'key rotate --json'],
    async change({ ctx, out, caller }) {
      const { rotateKeys } = await import('#upkeep/rotate-keys.ts')
      const report = await rotateKeys(ctx, caller, {
        onProgress: ({ rotated, already_current }) =>
          out.progress(`${rotated} rotated, ${already_current} were already under "${ctx.keyring.currentId}"`),
      })
      out.result(report, () => {
        out.line(`${report.rotated} secrets rotated, ${report.already_current} already under the first key`)
      })
    },
  },
}
