import type { Config } from '#config.ts'
import { formSource } from '#http/html.ts'

/** Payment pages stand under names of the provider's choosing; in development also at its stand-in's address `apiBase`. */
export function httpsAnd({ env }: Config, apiBase: string | null): string[] {
  return ['https:', ...(env === 'development' && apiBase !== null ? [formSource(apiBase)] : [])]
}
