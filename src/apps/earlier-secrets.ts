import { z } from 'zod'
import type { Context } from '#context.ts'
import type { RealTime } from '#shared/time.ts'
import { secretPlace, type App } from './store.ts'

/** An API secret that a rotation left valid until `validUntil` (ISO 8601, UTC). */
const EarlierSecrets = z.array(z.strictObject({ secret: z.string(), validUntil: z.iso.datetime() }))
type EarlierSecret = z.infer<typeof EarlierSecrets>[number]

type Owner = Pick<App, 'apiKey' | 'earlierApiSecrets'>

/** The earlier secrets of the app that are still valid at `now`. */
export function earlierSecrets(ctx: Context, app: Owner, now: RealTime): EarlierSecret[] {
  if (app.earlierApiSecrets === null) return []
  const text = ctx.keyring.open(app.earlierApiSecrets, secretPlace('earlier_api_secrets', app.apiKey))
  return EarlierSecrets.parse(JSON.parse(text)).filter(({ validUntil }) => Date.parse(validUntil) > now.getTime())
}

/** The column for these secrets; null for none. */
export function sealEarlier(ctx: Context, apiKey: string, secrets: readonly EarlierSecret[]): string | null {
  if (secrets.length === 0) return null
  return ctx.keyring.seal(JSON.stringify(secrets), secretPlace('earlier_api_secrets', apiKey))
}
