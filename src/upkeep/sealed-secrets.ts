import { secretPlace } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { credentialsPlace } from '#providers/accounts/store.ts'
import { listAppSecrets, listMethodSecrets, type SealedSecret } from './store.ts'

const PAGE = 50

/** Every stored secret, in pages: those of 50 rows. */
export async function* allSealedSecrets(ctx: Context): AsyncGenerator<readonly SealedSecret[]> {
  for (const list of [listAppSecrets, listMethodSecrets]) {
    for (let afterId: number | null = 0; afterId !== null;) {
      const { secrets, nextAfterId }: Awaited<ReturnType<typeof list>> = await list(ctx.db, afterId, PAGE)
      yield secrets
      afterId = nextAfterId
    }
  }
}

/** The place that the secret is sealed to: it opens only with the same one, so a secret that is copied to another row does not open. */
export function placeOf(secret: SealedSecret): string {
  return secret.table === 'apps'
    ? secretPlace(secret.column, secret.apiKey)
    : credentialsPlace(secret.appId, secret.method)
}

/** `the webhook_secret of app 3`, for operators. */
export function secretName(secret: SealedSecret): string {
  return secret.table === 'apps'
    ? `the ${secret.column} of app ${secret.id}`
    : `the ${secret.method} credentials of app ${secret.appId}, version ${secret.version}`
}
