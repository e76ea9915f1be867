import { ConfigError, loadConfig, unknownVariables, type Config } from '#config/config.ts'
import type { Environment } from '#config/environment.ts'
import { failed, passed, warning, type CheckResult } from '#shared/check-result.ts'

interface CheckedSettings {
  readonly config: Config | null
  readonly results: readonly CheckResult[]
}

/** The settings with the result of their check; null with a failure for each error. */
export function checkSettings(environment?: Environment): CheckedSettings {
  try {
    const config = loadConfig(environment)
    return { config, results: [resultOf(config, unknownVariables(environment))] }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const fix = 'correct it in the environment (README, Configuration)'
    return { config: null, results: error.errors.map((text) => failed('settings', text, fix)) }
  }
}

function resultOf({ env, baseUrl }: Config, unknown: readonly string[]): CheckResult {
  const detail = `${env}, base address ${baseUrl}`
  if (unknown.length === 0) return passed('settings', detail)
  const fix = 'correct its name, or remove it (README, Configuration)'
  return warning('settings', `${detail}; not a setting: ${unknown.join(', ')}`, fix)
}
