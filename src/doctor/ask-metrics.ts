import { listenUrl } from '#config/config.ts'
import type { Context } from '#context.ts'
import { EndpointError, requestEndpoint } from '#http/outbound/request-endpoint.ts'

/** What this machine's daemon answered for `/metrics`: Prometheus text, or why there is none and what to do. */
export type MetricsAnswer = { readonly url: string } & (
  | { readonly text: string; readonly error: null; readonly fix: null }
  | { readonly text: null; readonly error: string; readonly fix: string }
)

const DEADLINE_MS = 1500
const REFUSALS = [401, 403]

/** Asks the daemon at `BILLING_HOST` and `BILLING_PORT`, with the token of the settings. */
export async function askMetrics({ config }: Context): Promise<MetricsAnswer> {
  const url = `${daemonUrl(config)}/metrics`
  const headers = config.metricsToken === null ? {} : { authorization: `Bearer ${config.metricsToken}` }
  try {
    const { status, body } = await requestEndpoint({ method: 'GET', url, headers, deadlineMs: DEADLINE_MS })
    if (status === 200) return { url, text: body, error: null, fix: null }
    const fix = REFUSALS.includes(status)
      ? 'set BILLING_METRICS_TOKEN, the same for the daemon and here (service install makes one), and restart the daemon'
      : 'set BILLING_HOST and BILLING_PORT to the address of the daemon: something else answers there'
    return { url, text: null, error: `${url} answered ${status}`, fix }
  } catch (error) {
    if (!(error instanceof EndpointError)) throw error
    const fix =
      'start the daemon, or set BILLING_HOST and BILLING_PORT to its address (its log line "listening" has it)'
    return { url, text: null, error: `no answer from ${url}: ${error.failure}`, fix }
  }
}

/** Where this machine's daemon answers programs beside it. */
export function daemonUrl({ host, port }: Pick<Context['config'], 'host' | 'port'>): string {
  return listenUrl(host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host, port)
}
