import type { Commands, Texts } from './declaration.ts'

/** `key …`: the keys that secrets are encrypted with. */
export const commands: Commands = {
  'key export': {
    description: 'write the keys of BILLING_ENCRYPTION_KEYS, encrypted to another recipient than the backups',
    options: [
      ['--recipient <age1…>', 'the public key of age of whoever keeps the keys'],
      ['--to <file>', 'the file; by default one in this folder that is named after the day'],
    ],
    examples: ['key export --recipient age1… --to paygate-keys.age'],
    async print(out, _args, options: Texts<'recipient' | 'to'>) {
      const { loadConfig } = await import('#config/config.ts')
      const { exportKeys } = await import('#backups/export-keys.ts')
      const { encryptionKeys } = await import('#open-context.ts')
      const { systemClock } = await import('#shared/time.ts')
      const { required } = await import('./ask.ts')
      const recipient = await required(options.recipient, '--recipient', "The keeper's public key of age (age1…):")
      const config = loadConfig()
      const keys = encryptionKeys(config)
      const exported = await exportKeys(config, keys, { recipient, to: options.to, now: systemClock.now() })
      out.result(exported, () => {
        out.fields({ file: exported.file, keys: exported.keys })
        out.line('Keep it away from the backups: whoever opens both can read every secret')
      })
    },
  },
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
