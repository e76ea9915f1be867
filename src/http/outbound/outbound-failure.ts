import { errors } from 'undici'

/** Why no answer came. `blocked_address`: the receiver is not on the public internet (R157). */
export type OutboundFailure =
  | 'blocked_address'
  | 'insecure_url'
  | 'invalid_url'
  | 'unknown_host'
  | 'connection_refused'
  | 'unreachable'
  | 'tls_failed'
  | 'timeout'
  | 'connection_lost'
  | 'invalid_response'
  | 'interrupted'
  | 'failed'

const FAILURE_OF_CODE: readonly (readonly [RegExp, OutboundFailure])[] = [
  [/^blocked_address$/, 'blocked_address'],
  [/^(ENOTFOUND|ENODATA|EAI_\w+|ESERVFAIL|EBADNAME|ETIMEOUT)$/, 'unknown_host'],
  [/^ECONNREFUSED$/, 'connection_refused'],
  [/^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ENETDOWN)$/, 'unreachable'],
  [/^(UND_ERR_CONNECT_TIMEOUT|UND_ERR_HEADERS_TIMEOUT|UND_ERR_BODY_TIMEOUT|ETIMEDOUT)$/, 'timeout'],
  [/^(EPROTO|ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH)/, 'tls_failed'],
  [/^(HPE_|UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES_)/, 'invalid_response'],
  [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/, 'connection_lost'],
]

/** Why a request that threw `error` got no answer. */
export function outboundFailureOf(error: unknown): OutboundFailure {
  if (error instanceof errors.HTTPParserError) return 'invalid_response'
  const { code, cause } = error as { code?: unknown; cause?: unknown }
  const known = FAILURE_OF_CODE.find(([pattern]) => typeof code === 'string' && pattern.test(code))
  if (known) return known[1]
  return cause instanceof Error ? outboundFailureOf(cause) : 'failed'
}
