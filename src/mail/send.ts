import { randomBytes } from 'node:crypto'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import nodemailer, { type SendMailOptions, type Transporter } from 'nodemailer'
import type { Config } from '#config.ts'
import { messageOf } from '#shared/errors.ts'
import { SECOND_MS } from '#shared/time.ts'
import type { Logger } from '#shared/log.ts'
import { isLoopbackHost } from '#shared/loopback.ts'
import { dkimSigner, type SignMessage } from './sign.ts'

export interface Mailbox {
  readonly name: string
  readonly address: string
}

export interface Mail {
  readonly from: Mailbox
  readonly to: Mailbox
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
 * `no_such_address`: the server permanently refused every recipient, because there is no such mailbox.
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
  /** Resolves when the mail was accepted. Throws `MailError`. */
  send(mail: Mail, options?: SendOptions): Promise<void>
  /** Connects and logs in. Throws `MailError`. */
  verify(): Promise<void>
  close(): void
}

/** The size of the connection pool: this many mails are sent at the same time. */
export const MAIL_CONNECTIONS = 5

const SEND_DEADLINE_MS = 60 * SECOND_MS

/** The configured mailer; null in production without an SMTP server. */
export function openMailer(config: Config, log: Logger): Mailer | null {
  if (config.smtpUrl) return new SmtpMailer(config.smtpUrl, dkimSigner(config))
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

class SmtpMailer implements Mailer {
  readonly #transport: Transporter

  constructor(url: string, sign: SignMessage | null) {
    const { hostname } = new URL(url)
    this.#transport = nodemailer.createTransport({
      url,
      pool: true,
      maxConnections: MAIL_CONNECTIONS,
      // Otherwise the pool resends a mail whose connection closed, even if the server had received all of it.
      maxRequeues: 0,
      connectionTimeout: 10 * SECOND_MS,
      greetingTimeout: 10 * SECOND_MS,
      socketTimeout: 30 * SECOND_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
      // No authority certifies a loopback address, and nobody can listen in between.
      ...(isLoopbackHost(hostname) ? { tls: { rejectUnauthorized: false } } : {}),
    })
    this.#transport.use('stream', (message, done) => {
      const { handOver } = message.data as { handOver?: HandOver }
      // Before the last moment at which the mail can be stopped, which is when its first byte leaves.
      if (sign) message.message.processFunc(sign)
      if (handOver) message.message.processFunc((input) => new HandOverStream(handOver, input))
      done()
    })
  }

  async send(mail: Mail, options: SendOptions = {}): Promise<void> {
    const handOver = new HandOver(options.beforeHandOver)
    // AbortSignal.timeout would keep its timer running after the mail.
    const deadline = new AbortController()
    const timer = setTimeout(() => deadline.abort(), SEND_DEADLINE_MS)
    try {
      const message = { ...toMessage(mail), handOver, signal: deadline.signal }
      await this.#transport.sendMail(message)
    } catch (error) {
      throw new MailError(failureOf(error, handOver), handOver.refusal ?? error)
    } finally {
      clearTimeout(timer)
    }
  }

  async verify(): Promise<void> {
    try {
      await this.#transport.verify()
    } catch (error) {
      throw new MailError('unreachable', error)
    }
  }

  close(): void {
    this.#transport.close()
  }
}

/** The progress of one message. */
class HandOver {
  refusal: Error | null = null
  /** The end of the message may have left, so that the server may have accepted it. */
  isComplete = false
  readonly #before: (() => Promise<void>) | undefined

  constructor(before: (() => Promise<void>) | undefined) {
    this.#before = before
  }

  /** Throws if the message must not leave. */
  async begin(): Promise<void> {
    try {
      await this.#before?.()
    } catch (error) {
      this.refusal = error instanceof Error ? error : new Error(String(error))
      throw this.refusal
    }
  }
}

/**
 * The message as nodemailer reads it, after the server's go-ahead (354). It is assembled before that, and leaves in one piece: a write
 * for each part costs more than everything else that nodemailer does.
 */
class HandOverStream extends Readable {
  readonly #handOver: HandOver
  readonly #whole: Promise<Buffer>
  #hasBegun = false

  constructor(handOver: HandOver, input: Readable) {
    super()
    this.#handOver = handOver
    this.#whole = gather(input)
    // `_read` reports the error.
    this.#whole.catch(() => undefined)
  }

  override _read(): void {
    if (this.#hasBegun) return
    this.#hasBegun = true
    this.#handOverWhole().catch((error: unknown) => this.destroy(error as Error))
  }

  async #handOverWhole(): Promise<void> {
    const whole = await this.#whole
    await this.#handOver.begin()
    if (this.destroyed) return
    this.push(whole)
    this.#handOver.isComplete = true
    this.push(null)
  }
}

function gather(input: Readable): Promise<Buffer> {
  const chunks: Buffer[] = []
  return new Promise((resolve, reject) => {
    input
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('end', () => resolve(Buffer.concat(chunks)))
      .on('error', reject)
  })
}

interface SmtpError {
  readonly code?: string
  readonly responseCode?: number
  readonly response?: string
  /** The error of each recipient, where every one was refused. */
  readonly rejectedErrors?: readonly SmtpError[]
}

function failureOf(error: unknown, handOver: HandOver): MailFailure {
  const { code, responseCode } = error as SmtpError
  if (handOver.refusal) return 'refused'
  const wasAnswered = (code === 'EENVELOPE' || code === 'EMESSAGE') && responseCode !== undefined
  if (wasAnswered && responseCode === 421) return 'unreachable'
  if (wasAnswered) return areAddressesWrong(error as SmtpError) ? 'no_such_address' : 'refused'
  if (handOver.isComplete) return 'unknown'
  return code === 'EENVELOPE' || code === 'EMESSAGE' ? 'refused' : 'unreachable'
}

/**
 * Whether every recipient's address is wrong. A server that refuses us (5.7.x, relaying denied) or whose mailbox is full (5.2.2) may
 * accept the mail later, even if its code is permanent.
 */
function areAddressesWrong({ rejectedErrors = [] }: SmtpError): boolean {
  return rejectedErrors.length > 0 && rejectedErrors.every(({ response = '' }) => isNoSuchAddress(response))
}

function isNoSuchAddress(response: string): boolean {
  const [, code = '', enhanced] = /^(\d{3})[ -](?:(\d\.\d{1,3}\.\d{1,3})\b)?/.exec(response) ?? []
  // RFC 3463: 5.1.x is about an address, 5.1.7 and 5.1.8 about the sender's; 5.2.1 is a disabled mailbox.
  return enhanced === undefined ? /^55[013]$/.test(code) : /^5\.(1\.(?!7$|8$)|2\.1$)/.test(enhanced)
}

/** Development without an SMTP server: each mail is a file that any mail program opens. */
class FileMailer implements Mailer {
  readonly #folder: string
  readonly #log: Logger

  constructor(folder: string, log: Logger) {
    this.#folder = folder
    this.#log = log
  }

  async send(mail: Mail, options: SendOptions = {}): Promise<void> {
    const path = join(this.#folder, `${fileName(mail.messageId)}.eml`)
    try {
      const content = await compose(mail)
      await options.beforeHandOver?.()
      await this.#write(path, content)
    } catch (error) {
      throw new MailError('refused', error)
    }
    this.#log.info({ path, template: mail.messageId.split('.')[0] }, 'mail written to a file')
  }

  async verify(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
  }

  close(): void {
    // A folder has nothing to close.
  }

  async #write(path: string, content: Buffer): Promise<void> {
    await this.verify()
    const unfinished = `${path}.${randomBytes(4).toString('hex')}.tmp`
    await writeFile(unfinished, content, { mode: 0o600 })
    await rename(unfinished, path)
  }
}

/** The message as bytes, including Bcc, so that the file shows it. */
async function compose(mail: Mail): Promise<Buffer> {
  const transport = nodemailer.createTransport({ streamTransport: true, buffer: true })
  const sent = await transport.sendMail(toMessage(mail))
  return sent.message as Buffer
}

function toMessage(mail: Mail): SendMailOptions {
  return {
    from: { ...mail.from },
    to: { ...mail.to },
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

function fileName(messageId: string): string {
  return messageId.replace(/[^A-Za-z0-9._-]/g, '_')
}
