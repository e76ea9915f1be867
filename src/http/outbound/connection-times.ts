/** Time for name resolution, connection and TLS, within the deadline of the whole attempt. */
export const CONNECT_MS = 5000
/** Short: a receiver that closes an idle connection just when we send costs an attempt. */
export const KEEP_ALIVE_MS = 1000
