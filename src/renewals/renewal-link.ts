/** The page where a subscription is paid for its next period. Whoever holds it may pay, so it is in mails alone. */
export function renewalLink(baseUrl: string, renewalToken: string): string {
  return `${baseUrl}/renew/${renewalToken}`
}

/** The page that stops the mails of one subscription; a POST there stops them at once (RFC 8058). */
export function optOutLink(baseUrl: string, renewalToken: string): string {
  return `${renewalLink(baseUrl, renewalToken)}/opt-out`
}
