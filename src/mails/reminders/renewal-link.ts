/** The page where a subscription is paid for its next period. Whoever has the link can pay: mails contain it, and operators can give it. */
export function renewalLink(baseUrl: string, renewalToken: string): string {
  return `${baseUrl}/renew/${renewalToken}`
}

/** The page that stops the mails of one subscription; a POST to it stops them at once (RFC 8058). */
export function optOutLink(baseUrl: string, renewalToken: string): string {
  return `${renewalLink(baseUrl, renewalToken)}/opt-out`
}
