import type { Config } from '#config/config.ts'
import { formSource } from '#http/html.ts'

/** The provider chooses the hosts of its payment pages; in development they may also be at the stand-in's address `apiBase`. */
export function httpsAnd({ env }: Config, apiBase: string | null): string[] {
  return ['https:', ...(env === 'development' && apiBase !== null ? [formSource(apiBase)] : [])]
}
