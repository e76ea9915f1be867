import { Readable } from 'node:stream'
import nodemailer, { type Transporter } from 'nodemailer'
import type { Logger } from '#shared/log.ts'
import { isLoopbackHost } from '#shared/loopback.ts'
import { SECOND_MS, startDeadline } from '#shared/time.ts'
import { MailError, toMessage, type Mail, type Mailer, type SendOptions } from './mail.ts'
import type { SignMessage } from './sign.ts'
import { mailFailureOf, failureOfRefused, type Progress, type SmtpError } from './smtp-failure.ts'

/** The size of the connection pool: this many mails are sent at the same time. */
export const MAIL_CONNECTIONS = 5

const SEND_DEADLINE_MS = 60 * SECOND_MS

/** Sends over several connections to an SMTP server. */
export class SmtpMailer implements Mailer {
  readonly #transport: Transporter
  readonly #log: Logger

  constructor(url: string, sign: SignMessage | null, log: Logger) {
    this.#log = log
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
      if (handOver) {
        // Set, because nodemailer otherwise makes one for each reading, and notes in another one whom the server refuses.
        message.message.setEnvelope(message.message.getEnvelope())
        handOver.envelope = message.message.getEnvelope()
        message.message.processFunc((input) => new HandOverStream(handOver, input))
      }
      done()
    })
  }

  async send(mail: Mail, options: SendOptions = {}): Promise<void> {
    const refused = await this.#deliver(mail, new HandOver(mail, options.beforeHandOver))
    if (refused.length === 0) return
    const { messageId } = mail
    this.#log.warn({ messageId, refused: refused.length }, 'a mail was sent, and not to all of its recipients')
  }

  /** Resolves when the server has accepted the mail for one of its recipients; returns the errors of those that it refused. */
  async #deliver(mail: Mail, handOver: HandOver): Promise<readonly SmtpError[]> {
    const deadline = new AbortController()
    const cancelDeadline = startDeadline(SEND_DEADLINE_MS, () => deadline.abort())
    try {
      const message = { ...toMessage(mail), handOver, signal: deadline.signal }
      const { rejectedErrors = [] } = (await this.#transport.sendMail(message)) as { rejectedErrors?: SmtpError[] }
      return rejectedErrors
    } catch (error) {
      if (handOver.refusal instanceof MailError) throw handOver.refusal
      throw new MailError(mailFailureOf(error, handOver), handOver.refusal ?? error)
    } finally {
      cancelDeadline()
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

/** The recipients of a message, and those of them whom the server has refused by the time of its go-ahead. */
interface Envelope {
  readonly to: readonly string[]
  readonly rejectedErrors?: readonly SmtpError[]
}

/** The hand-over of one message to the server. */
class HandOver implements Progress {
  refusal: Error | null = null
  isComplete = false
  envelope: Envelope = { to: [] }
  readonly #mail: Mail
  readonly #before: (() => Promise<void>) | undefined

  constructor(mail: Mail, before: (() => Promise<void>) | undefined) {
    this.#mail = mail
    this.#before = before
  }

  /** Throws if the message must not leave. */
  async begin(): Promise<void> {
    try {
      this.#requireReceiver()
      await this.#before?.()
    } catch (error) {
      this.refusal = error instanceof Error ? error : new Error(String(error))
      throw this.refusal
    }
  }

  /** The server would take the mail for Cc and Bcc alone, and again with each retry. */
  #requireReceiver(): void {
    const addresses = this.#mail.to.map(({ address }) => address.toLowerCase())
    const { rejectedErrors = [] } = this.envelope
    const refused = rejectedErrors.filter(({ recipient = '' }) => addresses.includes(recipient.toLowerCase()))
    if (refused.length === addresses.length) throw new MailError(failureOfRefused(refused), refused[0])
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
