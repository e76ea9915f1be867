import type { Config } from '#config/config.ts'
import { formSource } from '#http/html.ts'

/**
 * Any https address, because the provider chooses the hosts of its payment pages; in development also `apiBase`, where a stand-in of the
 * provider serves them.
 */
export function httpsSources({ env }: Config, apiBase: string | null): string[] {
  return ['https:', ...(env === 'development' && apiBase !== null ? [formSource(apiBase)] : [])]
}
