import type { Context } from '#context.ts'
import type { Caller } from '#commands/caller.ts'
import { command, nothing } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import { inTransaction } from '#commands/transaction.ts'
import { counted } from '#shared/counted.ts'
import { AppError, messageOf } from '#shared/errors.ts'
import { allSealedSecrets, placeOf, secretName } from './sealed-secrets.ts'
import { replaceSealed, type SealedSecret } from './store.ts'

export interface RotationReport {
  readonly rotated: number
  readonly already_current: number
}

export interface RotationOptions {
  /** Called after each batch with the counts so far. */
  readonly onProgress?: (report: RotationReport) => void
}

/**
 * Re-encrypts every sealed secret under the first key of the settings, in small transactions. A run that was interrupted can be repeated.
 * A secret that is replaced meanwhile stays as it was set. Throws `invalid_request` if secrets cannot be decrypted, after the others were
 * rotated.
 */
export async function rotateKeys(
  ctx: Context,
  caller: Caller,
  { onProgress = () => undefined }: RotationOptions = {},
): Promise<RotationReport> {
  const unreadable: string[] = []
  let rotated = 0
  let current = 0
  for await (const page of allSealedSecrets(ctx)) {
    const stale = page.filter(({ sealed }) => ctx.keyring.isStale(sealed))
    const resealed = reseal(ctx, stale)
    unreadable.push(...resealed.unreadable)
    current += page.length - stale.length
    rotated += await save(ctx, resealed.renewed)
    onProgress({ rotated, already_current: current })
  }
  const report = { rotated, already_current: current }
  if (rotated > 0) await perform(ctx, caller, recordRotation, undefined, report)
  if (unreadable.length > 0) {
    const others = `${rotated} others were rotated`
    throw new AppError(
      'invalid_request',
      `${counted(unreadable.length, 'secret')} cannot be decrypted, ${others}: ${unreadable.join('; ')}`,
    )
  }
  return report
}

interface Resealed {
  readonly secret: SealedSecret
  readonly sealed: string
}

/** The secrets under the current key, and why the others cannot be decrypted. */
function reseal({ keyring }: Context, secrets: readonly SealedSecret[]): { renewed: Resealed[]; unreadable: string[] } {
  const renewed: Resealed[] = []
  const unreadable: string[] = []
  for (const secret of secrets) {
    const place = placeOf(secret)
    try {
      renewed.push({ secret, sealed: keyring.seal(keyring.open(secret.sealed, place), place) })
    } catch (error) {
      unreadable.push(`${secretName(secret)}: ${messageOf(error)}`)
    }
  }
  return { renewed, unreadable }
}

async function save(ctx: Context, renewed: readonly Resealed[]): Promise<number> {
  if (renewed.length === 0) return 0
  return inTransaction(ctx, async (tx) => {
    let saved = 0
    for (const { secret, sealed } of renewed) if (await replaceSealed(tx, secret, sealed)) saved += 1
    return saved
  })
}

const recordRotation = command({
  name: 'key.rotate',
  input: nothing,
  run: (tx, _input, report: RotationReport) =>
    tx.audit({ subject: `key ${tx.ctx.keyring.currentId}`, after: { ...report } }),
})
