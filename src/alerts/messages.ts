import type { Config } from '#config/config.ts'
import type { Tx } from '#commands/transaction.ts'
import { insertMessage, type Alert, type AlertMessage, type Channel, type MessageType } from './store.ts'

/** What a message says, by whichever channel. */
export type Content = Pick<AlertMessage, 'alertId' | 'type' | 'kind' | 'subject' | 'text' | 'since'>

/** The channels that the settings name. */
export function channelsOf({ alerts }: Pick<Config, 'alerts'>): Channel[] {
  const channels: Channel[] = []
  if (alerts.mail.length > 0) channels.push('mail')
  if (alerts.webhook) channels.push('webhook')
  return channels
}

/** Writes a message for each channel, in the transaction of the change that it reports. */
export async function writeMessages(tx: Tx, channels: readonly Channel[], content: Content): Promise<void> {
  for (const channel of channels) {
    const unsent = { attempts: 0, nextTryAt: tx.now, sentAt: null, lastError: null }
    await insertMessage(tx, { ...content, channel, createdAt: tx.now, ...unsent })
  }
}

/** The content of a message about an alert. */
export function contentOf(alert: Alert, type: MessageType): Content {
  const { id: alertId, kind, subject, since } = alert
  const text = type === 'alert.closed' ? `Resolved: ${alert.text}` : alert.text
  return { alertId, type, kind, subject, text, since }
}
