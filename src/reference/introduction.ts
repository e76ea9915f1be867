/** The first section of the reference, in Markdown. */
export const INTRODUCTION = `
JSON in and out, UTF-8. A success is \`{"success": true, "data": …}\`. Times are UTC, written \`YYYY-MM-DD HH:MM:SS\`. Amounts are integers in the currency's
smallest unit: 99000 for VND 99,000, 990 for USD 9.90. An unknown or repeated field of the body or parameter of the query is an error that names it. A body can have at most 100 KB. A \`GET\` must not have a body. Every response has \`X-Request-Id\`.

### Signing

A seller's server sends three headers: \`X-App-Key\`, \`X-Timestamp\` (Unix seconds, within 300 seconds of our clock) and \`X-Signature\`, the lower-case hex HMAC-SHA256 of
\`{timestamp}.{METHOD}.{path with query, as sent}.{raw body}\`, keyed with the text of the \`api_secret\`. To try an implementation: with the secret \`sk_test_secret\` and the timestamp
\`1767225600\`, \`GET /api/v1/plans?status=active\` without a body signs to \`79734b58b3c202061a2f729913a689b6ad3c0fbe8ce96d66d8a2f6c456ee3232\`.

With the key of a sandbox app, a 401 says which part is wrong, and shows the text that had to be signed. Live keys get the same message for every error.

The client of an end user sends \`X-App-Key\` and \`Authorization: Bearer <identity token>\` instead, and can access only its own end user.

### Idempotency

Send an \`Idempotency-Key\` (1 to 255 printable ASCII characters) with any POST or PUT to make it safe to repeat. The first response is stored for 24 hours and returned again, with the header \`Idempotent-Replayed: true\`. A different body under
the same key, or a repeat while the first request is still running, gets 409 \`idempotency_conflict\`. 429 and 5xx are not stored: send the request again, with the same key.

### Lists

Lists are newest first, except subscriptions, which are ordered by \`external_ref\`. \`GET /plans\` returns all plans. Every other list takes \`limit\` (1 to 100, 20 by default) and \`cursor\`; its response has \`next_cursor\`, which is null on the last page. A cursor is valid for the list that returned it.

### Limits

Where the service limits the calls of an app, responses carry \`RateLimit-Limit\` (how many calls are allowed at once), \`RateLimit-Remaining\` and \`RateLimit-Reset\` (seconds until all are allowed again).

### Errors

\`{"success": false, "error": {"code": "…", "message": "…", "field": "prices.0.trial.amount", "request_id": "…"}}\`. \`field\` is null if no field is invalid.
`.trim()

/** The introduction to webhooks, in Markdown. */
export const WEBHOOK_INTRODUCTION = `
The body is \`{"id", "event_type", "app_id", "data", "created_at"}\`. Verify the signature over the exact bytes, in constant time, and reject timestamps that are more than 300 seconds from now. Any 2xx acknowledges. Redirects
are not followed. Anything else is retried after 1, 5, 15, 60 and 240 minutes. Delivery is at least once and in no guaranteed order. Skip events whose signed \`id\` you have handled: it is the same for all attempts, as are \`X-Gateway-Event-Id\` and \`webhook-id\`, which repeat it. Ignore event types that you do not know.

\`X-Gateway-Signature\` is the hex HMAC-SHA256 of \`{X-Gateway-Timestamp}.{raw body}\`, keyed with the whole text of the \`whsec_…\` secret. \`webhook-id\`, \`webhook-timestamp\` and \`webhook-signature\` are for the libraries of
[Standard Webhooks](https://www.standardwebhooks.com): give them the same secret.
`.trim()
