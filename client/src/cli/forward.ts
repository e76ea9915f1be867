import type { Event } from '../types.ts'
import { signWebhook } from '../testing.ts'
import { parseTime } from '../times.ts'
import { UsageError } from './usage-error.ts'

/** What a receiver answered. `error` is null if it acknowledged. */
export interface Answer {
  readonly http_status: number | null
  readonly error: string | null
  readonly duration_ms: number
}

export type Forwarder = (event: Event) => Promise<Answer>

/** As long as Paygate waits for a receiver. */
const DEADLINE_MS = 10_000

/** Posts events to an address, with the body, the headers and the signatures of a first delivery. Throws `UsageError` without an address or a secret. */
export function openForwarder(to: string, secret: string | null): Forwarder {
  if (!/^https?:\/\//.test(to) || !URL.canParse(to)) throw new UsageError('--forward-to must be an http(s) address')
  if (secret === null || !/^whsec_./.test(secret))
    throw new UsageError('--forward-to signs what it sends: set PAYGATE_WEBHOOK_SECRET, the whsec_… of your app')
  return async (event) => {
    const startedAt = performance.now()
    const { body, headers } = await signWebhook(envelopeOf(event), secret)
    const answer = await post(to, body, headers)
    return { ...answer, duration_ms: Math.round(performance.now() - startedAt) }
  }
}

async function post(
  to: string,
  body: string,
  headers: Readonly<Record<string, string>>,
): Promise<Omit<Answer, 'duration_ms'>> {
  const signal = AbortSignal.timeout(DEADLINE_MS)
  try {
    const { status, ok } = await fetch(to, { method: 'POST', headers, body, redirect: 'manual', signal })
    return { http_status: status, error: ok ? null : `http_${status}` }
  } catch (error) {
    return { http_status: null, error: signal.aborted ? 'timeout' : reasonOf(error) }
  }
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  return (cause as NodeJS.ErrnoException).code ?? String(cause)
}

/** The fields of a webhook's body, whose time has a zone. */
function envelopeOf({ id, event_type, app_id, data, created_at }: Event): Parameters<typeof signWebhook>[0] {
  const time = parseTime(created_at).toISOString().replace('.000Z', '+00:00')
  return { id, event_type, app_id, data, created_at: time } as Parameters<typeof signWebhook>[0]
}
