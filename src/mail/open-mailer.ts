import { join } from 'node:path'
import type { Config } from '#config/config.ts'
import type { Logger } from '#shared/log.ts'
import { FileMailer } from './file-mailer.ts'
import type { Mailbox, Mailer } from './mail.ts'
import { dkimSigner } from './sign.ts'
import { SmtpMailer } from './smtp-mailer.ts'

/** The configured mailer; null in production without an SMTP server. */
export function openMailer(config: Config, log: Logger): Mailer | null {
  if (config.smtpUrl) return new SmtpMailer(config.smtpUrl, dkimSigner(config), log)
  return config.env === 'development' ? new FileMailer(join(config.home, 'mail'), log) : null
}

/** The sender of an app's mails: the app's name, and its own address if it has one. */
export function senderOf(app: { readonly name: string; readonly mailFrom: string | null }, config: Config): Mailbox {
  const configured = parseMailbox(app.mailFrom ?? config.mailFrom ?? 'billing@localhost')
  return app.mailFrom && configured.name !== '' ? configured : { name: app.name, address: configured.address }
}

function parseMailbox(text: string): Mailbox {
  const [, name, address] = /^([^<]*)<([^<>]+)>$/.exec(text.trim()) ?? []
  if (name === undefined || address === undefined) return { name: '', address: text.trim() }
  return { name: name.trim().replace(/^"([^"]*)"$/, '$1'), address }
}
