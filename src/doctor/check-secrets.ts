import type { Context } from '#context.ts'
import { counted } from '#shared/counted.ts'
import { messageOf } from '#shared/errors.ts'
import { failed, passed, warning, type CheckResult } from '#shared/check-result.ts'
import { allSealedSecrets, placeOf, secretName } from '#upkeep/sealed-secrets.ts'
import type { SealedSecret } from '#upkeep/store.ts'

const MAX_NAMED = 5

/** Whether every stored secret can be decrypted with the keys in the settings. */
export async function checkSecrets(ctx: Context): Promise<CheckResult[]> {
  const unreadable: string[] = []
  let opened = 0
  let stale = 0
  for await (const page of allSealedSecrets(ctx)) {
    for (const secret of page) {
      const error = decryptionErrorOf(ctx, secret)
      if (error === null) opened += 1
      else unreadable.push(`${secretName(secret)}: ${error}`)
      if (ctx.keyring.isStale(secret.sealed)) stale += 1
    }
  }
  if (unreadable.length > 0) return [unreadableResult(unreadable)]
  if (stale > 0) {
    const detail = `${counted(opened, 'secret')} can be decrypted, ${stale} of them with a key older than "${ctx.keyring.currentId}"`
    return [
      warning('keys', detail, 'run billing-cli key rotate, then remove the older key from BILLING_ENCRYPTION_KEYS'),
    ]
  }
  return [passed('keys', `${counted(opened, 'secret')} can be decrypted with key "${ctx.keyring.currentId}"`)]
}

function decryptionErrorOf(ctx: Context, secret: SealedSecret): string | null {
  try {
    ctx.keyring.open(secret.sealed, placeOf(secret))
    return null
  } catch (error) {
    return messageOf(error)
  }
}

function unreadableResult(secrets: readonly string[]): CheckResult {
  const more = secrets.length > MAX_NAMED ? `; and ${secrets.length - MAX_NAMED} more` : ''
  return failed(
    'keys',
    `${counted(secrets.length, 'secret')} cannot be decrypted: ${secrets.slice(0, MAX_NAMED).join('; ')}${more}`,
    'add the missing key to BILLING_ENCRYPTION_KEYS; if it is lost, set a new secret (app rotate-secret, app rotate-webhook-secret, method enable, app set-realtime), then forget the earlier versions of credentials (method forget)',
  )
}
