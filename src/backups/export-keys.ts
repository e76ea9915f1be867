import { resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Config } from '#config/config.ts'
import { parseKeyring } from '#shared/crypto.ts'
import { AppError } from '#shared/errors.ts'
import { formatDay, type RealTime } from '#shared/time.ts'
import { encrypted, readIdentities, recipientsOf, refuseWrongRecipient } from './encryption.ts'
import { fileSink } from './sinks.ts'

export interface ExportedKeys {
  readonly file: string
  /** The ids of the keys in it. */
  readonly keys: readonly string[]
}

export interface ExportOptions {
  readonly recipient: string
  readonly to: string | undefined
  readonly now: RealTime
}

/**
 * Writes the encryption keys, in the form of the setting, encrypted to the recipient. Throws `invalid_request` for the recipient of the
 * backups, because one key would then open both a backup and the secrets in it.
 */
export async function exportKeys(
  { backup }: Pick<Config, 'backup'>,
  keys: string,
  { recipient, to, now }: ExportOptions,
): Promise<ExportedKeys> {
  await refuseWrongRecipient(recipient)
  const ofBackups = backup.identityFile === null ? [] : await recipientsOf(readIdentities(backup.identityFile))
  if ([backup.recipient, ...ofBackups].includes(recipient.toLowerCase()))
    throw new AppError('invalid_request', 'backups are encrypted to this recipient: the keys need another one')
  const sink = await fileSink(resolve(to ?? `paygate-keys-${formatDay(now)}.age`))
  try {
    await pipeline(() => encrypted([Buffer.from(`${keys.trim()}\n`)], recipient), sink.stream)
    return { file: await sink.finish(), keys: parseKeyring(keys).ids }
  } catch (error) {
    throw await sink.abandon(error)
  }
}
