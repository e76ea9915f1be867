import type { SendMailOptions } from 'nodemailer'
import { messageOf } from '#shared/errors.ts'

export interface Mailbox {
  readonly name: string
  readonly address: string
}

export interface Mail {
  readonly from: Mailbox
  /** Whose mail it is: it is sent once the server accepts it for one of them. */
  readonly to: readonly Mailbox[]
  readonly cc: readonly string[]
  readonly bcc: readonly string[]
  readonly subject: string
  readonly text: string
  readonly html: string
  /** Without angle brackets. The same for the same mail, so that a receiver recognizes a copy. */
  readonly messageId: string
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Why a mail was not confirmed as sent. Except for `unknown`, nothing was handed over.
 * `unreachable`: the server cannot be reached or does not let us in; another mail would fail too.
 * `refused`: the server (or the caller's `beforeHandOver`) refused this mail.
 * `no_such_address`: the server permanently refused every `to`, because there is no such mailbox.
 * `unknown`: the whole message was sent and no answer came; it may or may not be on its way.
 */
export type MailFailure = 'unreachable' | 'refused' | 'no_such_address' | 'unknown'

export class MailError extends Error {
  override readonly name = 'MailError'
  readonly failure: MailFailure

  constructor(failure: MailFailure, cause: unknown) {
    super(messageOf(cause), { cause })
    this.failure = failure
  }
}

export interface SendOptions {
  /**
   * Runs after the server is ready for the message and before its first byte leaves: the last moment at which the mail can still be
   * stopped, by throwing.
   */
  readonly beforeHandOver?: () => Promise<void>
}

/** Where mails go: an SMTP server, or in development a folder. */
export interface Mailer {
  /** Resolves when the mail was accepted for `to`, even if copies were refused. Throws `MailError`. */
  send(mail: Mail, options?: SendOptions): Promise<void>
  /** Connects and logs in. Throws `MailError`. */
  verify(): Promise<void>
  close(): void
}

/** The mail as nodemailer takes it. */
export function toMessage(mail: Mail): SendMailOptions {
  return {
    from: { ...mail.from },
    to: [...mail.to],
    cc: [...mail.cc],
    bcc: [...mail.bcc],
    subject: mail.subject,
    text: mail.text,
    // Set explicitly, because nodemailer would otherwise analyze each page and choose the same.
    html: { content: mail.html, contentTransferEncoding: 'quoted-printable' },
    messageId: `<${mail.messageId}>`,
    headers: { ...mail.headers },
    disableFileAccess: true,
    disableUrlAccess: true,
  }
}
