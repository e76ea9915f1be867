import type { Context } from '#context.ts'
import { EndpointError, requestEndpoint } from '#http/outbound/request-endpoint.ts'
import { parseJson } from '#shared/parse-json.ts'
import { passed, warning, type CheckResult } from '#shared/check-result.ts'
import { askMetrics } from './ask-metrics.ts'

const DEADLINE_MS = 5000
const REACH =
  'payers open this address: check BILLING_BASE_URL, its DNS, the proxy and the firewall, and that the daemon runs'

/** Whether the public base address leads to this service, as far as this machine sees it. */
export async function checkBaseAddress({ config: { baseUrl } }: Context): Promise<CheckResult[]> {
  const url = `${baseUrl}/healthz`
  try {
    const { status, body } = await requestEndpoint({ method: 'GET', url, headers: {}, deadlineMs: DEADLINE_MS })
    if (status === 200 && isOurs(body)) return [passed('address', `${baseUrl} leads here`)]
    return [warning('address', `another service answers at ${url}, with ${status}`, REACH)]
  } catch (error) {
    if (!(error instanceof EndpointError)) throw error
    return [warning('address', `${baseUrl} cannot be reached from here: ${error.failure}`, REACH)]
  }
}

function isOurs(body: string): boolean {
  return (parseJson(body) as { status?: unknown } | null)?.status === 'up'
}

/** Whether `watch` gets the daemon's metrics. */
export async function checkMetrics(ctx: Context): Promise<CheckResult[]> {
  const { url, error, fix } = await askMetrics(ctx)
  return [
    error === null ? passed('metrics', `${url} answers`) : warning('metrics', `watch sees no rates: ${error}`, fix),
  ]
}
