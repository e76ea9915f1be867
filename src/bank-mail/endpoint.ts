/** Where the relay posts mails (specification 5). */
export const RELAY_PATH = '/api/v1/webhooks/bank-transfer'

/** Largest post (specification 8). */
export const RELAY_BODY_BYTES = 256 * 1024
