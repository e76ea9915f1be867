import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import PostalMime, { type Email } from 'postal-mime'
import { SMTPServer, type SMTPServerSession } from 'smtp-server'

/** A mail as the server took it. */
export interface ReceivedMail {
  readonly from: string
  /** Every recipient of the envelope: To, Cc and Bcc. */
  readonly recipients: readonly string[]
  readonly overTls: boolean
  readonly raw: string
  readonly parsed: Email
}

/**
 * What the server does to the next mails.
 * `refuse-recipient` 550 at RCPT, or as `refusal` says; `refuse-data` 451 after the message; `drop-early` hangs up before DATA is allowed;
 * `drop-late` hangs up with the whole message in hand and no answer; `lose-answer` keeps the mail and hangs up before the answer.
 */
export type InboxBehaviour = 'accept' | 'refuse-recipient' | 'refuse-data' | 'drop-early' | 'drop-late' | 'lose-answer'

/** A real SMTP server on loopback that keeps what it takes. */
export class SmtpInbox {
  behaviour: InboxBehaviour = 'accept'
  /** What `refuse-recipient` answers. */
  refusal: readonly [code: number, text: string] = [550, 'no such mailbox']
  /** Recipients at which it hangs up, whatever the behaviour. */
  readonly hangsUpAt = new Set<string>()
  /** What it answers to RCPT for these addresses, whatever the behaviour. */
  readonly refusals = new Map<string, readonly [code: number, text: string]>()
  /** Messages that reached the end of DATA, taken or not. */
  messagesSeen = 0
  /** Runs before a recipient is accepted, hence before any byte of the message. */
  beforeGoAhead: (() => Promise<void>) | null = null
  /** Runs between the last byte of a message and the answer to it. */
  beforeAnswer: (() => Promise<void>) | null = null
  readonly mails: ReceivedMail[] = []
  #server: SMTPServer
  #port = 0

  readonly #starttls: boolean

  private constructor(starttls: boolean) {
    this.#starttls = starttls
    this.#server = this.#newServer()
  }

  /** `starttls` offers it with a certificate that nobody vouches for, as servers on loopback do. */
  static async open(options: { readonly starttls?: boolean } = {}): Promise<SmtpInbox> {
    const inbox = new SmtpInbox(options.starttls ?? false)
    await inbox.start()
    return inbox
  }

  get url(): string {
    return `smtp://127.0.0.1:${this.#port}`
  }

  /** Listens, after a `stop` at the same port as before. */
  async start(): Promise<void> {
    const listening = this.#server.listen(this.#port, '127.0.0.1')
    await once(listening, 'listening')
    this.#port = (listening.address() as AddressInfo).port
  }

  /** Hangs up on everybody and listens no more. */
  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const connection of this.#server.connections) connection._socket.destroy()
    await closed
    this.#server = this.#newServer()
  }

  /** The ids of the mails it took, in order. */
  get messageIds(): string[] {
    return this.mails.map(({ parsed }) => parsed.messageId ?? '')
  }

  clear(): void {
    this.mails.length = 0
    this.messagesSeen = 0
  }

  #newServer(): SMTPServer {
    const server = new SMTPServer({
      authOptional: true,
      disabledCommands: this.#starttls ? ['AUTH'] : ['AUTH', 'STARTTLS'],
      disableReverseLookup: true,
      hideSTARTTLS: !this.#starttls,
      logger: false,
      onRcptTo: ({ address }, session, done) => {
        if (this.behaviour === 'drop-early' || this.hangsUpAt.has(address)) {
          this.#hangUp(session)
          return
        }
        const refused = this.refusals.get(address) ?? (this.behaviour === 'refuse-recipient' ? this.refusal : null)
        const goAhead = this.beforeGoAhead?.() ?? Promise.resolve()
        goAhead.then(
          () => done(refused && refusal(...refused)),
          (error: unknown) => done(error as Error),
        )
      },
      onData: (stream, session, done) => {
        const chunks: Buffer[] = []
        stream.on('data', (chunk: Buffer) => chunks.push(chunk))
        stream.on('end', () => {
          this.#take(Buffer.concat(chunks), session).then(
            (answer) => {
              if (answer === 'hang-up') this.#hangUp(session)
              else done(answer)
            },
            (error: unknown) => done(error as Error),
          )
        })
      },
    })
    // A client that hangs up in the middle is part of what the tests do.
    server.on('error', () => undefined)
    return server
  }

  async #take(raw: Buffer, session: SMTPServerSession): Promise<Error | null | 'hang-up'> {
    this.messagesSeen += 1
    if (this.behaviour === 'refuse-data') return refusal(451, 'try again later')
    if (this.behaviour === 'drop-late') return 'hang-up'
    const { mailFrom, rcptTo } = session.envelope
    this.mails.push({
      from: mailFrom ? mailFrom.address : '',
      recipients: rcptTo.map(({ address }) => address),
      overTls: session.secure,
      raw: raw.toString('utf8'),
      parsed: await PostalMime.parse(raw),
    })
    await this.beforeAnswer?.()
    return this.behaviour === 'lose-answer' ? 'hang-up' : null
  }

  #hangUp(session: SMTPServerSession): void {
    for (const connection of this.#server.connections) {
      if (connection.id === session.id) connection._socket.destroy()
    }
  }
}

function refusal(responseCode: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode })
}

/** The value of a header, or null. Names in any case. */
export function headerOf(mail: ReceivedMail, name: string): string | null {
  return mail.parsed.headers.find(({ key }) => key === name.toLowerCase())?.value ?? null
}
