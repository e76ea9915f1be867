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
    const outcomes = stale.map((secret) => reseal(ctx, secret))
    unreadable.push(...outcomes.flatMap(({ error }) => error ?? []))
    current += page.length - stale.length
    rotated += await save(
      ctx,
      outcomes.flatMap(({ renewed }) => renewed ?? []),
    )
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

/** The secret under the current key, or why it cannot be decrypted. */
function reseal(
  ctx: Context,
  secret: SealedSecret,
): { readonly renewed: Resealed | null; readonly error: string | null } {
  const place = placeOf(secret)
  try {
    const sealed = ctx.keyring.seal(ctx.keyring.open(secret.sealed, place), place)
    return { renewed: { secret, sealed }, error: null }
  } catch (error) {
    return { renewed: null, error: `${secretName(secret)}: ${messageOf(error)}` }
  }
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
