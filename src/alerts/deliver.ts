import type { Config } from '#config/config.ts'
import type { Context } from '#context.ts'
import { requestEndpoint } from '#http/outbound/request-endpoint.ts'
import { htmlOf } from '#mail/render.ts'
import type { Mail } from '#mail/mail.ts'
import { openMailer, senderOf } from '#mail/open-mailer.ts'
import { randomHex } from '#shared/crypto.ts'
import { formatTimestamp, formatUtc, unixSeconds, type RealTime } from '#shared/time.ts'
import { standardHeaders, standardKey } from '#webhooks/signature.ts'
import type { AlertMessage } from './store.ts'

/** The content of a message. */
export type OutgoingAlert = Pick<AlertMessage, 'type' | 'kind' | 'subject' | 'text' | 'since'> & {
  /** The same for the same message, so that a receiver recognizes a copy. */
  readonly id: string
}

/** Sends messages as one mail. Throws `MailError`, or an error if no mail server is configured. */
export async function mailAlerts(ctx: Context, messages: readonly OutgoingAlert[]): Promise<void> {
  const mailer = openMailer(ctx.config, ctx.log)
  if (!mailer) throw new Error('no mail server is configured: set BILLING_SMTP_URL and BILLING_MAIL_FROM')
  try {
    await mailer.send(mailOf(ctx.config, messages))
  } finally {
    mailer.close()
  }
}

function mailOf(config: Config, messages: readonly OutgoingAlert[]): Mail {
  const from = senderOf({ name: 'Paygate', mailFrom: null }, config)
  const text = `${messages.map(paragraphOf).join('\n\n')}\n\n-- \nPaygate at ${config.baseUrl}\n`
  return {
    from,
    to: config.alerts.mail.map((address) => ({ name: '', address })),
    cc: [],
    bcc: [],
    subject: `[Paygate] ${titleOf(messages)}`.replace(/\s+/g, ' '),
    text,
    html: htmlOf(text),
    messageId: `${messages[0]?.id ?? 'alert'}.${randomHex(4)}@${from.address.split('@')[1] ?? 'localhost'}`,
    headers: { 'Auto-Submitted': 'auto-generated' },
  }
}

function titleOf(messages: readonly OutgoingAlert[]): string {
  const [only] = messages
  if (only && messages.length === 1) return headOf(only)
  return `${messages.length} alerts: ${[...new Set(messages.map(({ kind }) => kind))].join(', ')}`
}

function headOf({ type, kind, subject }: OutgoingAlert): string {
  if (type === 'alert.digest' || type === 'alert.test') return `${kind}: ${subject}`
  return `${type === 'alert.closed' ? 'resolved: ' : ''}${kind}: ${subject}`
}

function paragraphOf(message: OutgoingAlert): string {
  return `${headOf(message)}\n${message.text}\nSince ${formatUtc(message.since)}`
}

/** Posts a message according to Standard Webhooks. Throws unless the receiver answers 2xx. */
export async function postAlert({ config }: Context, message: OutgoingAlert, now: RealTime): Promise<void> {
  const { webhook } = config.alerts
  if (!webhook) throw new Error('no webhook is configured: set BILLING_ALERT_WEBHOOK_URL')
  const { id, type, kind, subject, text, since } = message
  const body = JSON.stringify({ id, type, kind, subject, text, since: formatTimestamp(since) })
  const { status } = await requestEndpoint({
    method: 'POST',
    url: webhook.url,
    headers: {
      'content-type': 'application/json',
      'user-agent': 'Paygate-Alerts/1',
      ...standardHeaders(standardKey(webhook.secret), { id, timestamp: unixSeconds(now), body }),
    },
    body,
    deadlineMs: config.webhook.timeoutMs,
  })
  if (status < 200 || status >= 300) throw new Error(`the receiver answered ${status}`)
}
