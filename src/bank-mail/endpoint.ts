/** Where the relay posts mails. */
export const RELAY_PATH = '/api/v1/webhooks/bank-transfer'

/** Maximum size of a post (R200). */
export const RELAY_BODY_BYTES = 256 * 1024
