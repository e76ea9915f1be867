import { randomBytes } from 'node:crypto'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import nodemailer from 'nodemailer'
import type { Logger } from '#shared/log.ts'
import { MailError, toMessage, type Mail, type Mailer, type SendOptions } from './mail.ts'

/** Development without an SMTP server: each mail is a file that any mail program opens. */
export class FileMailer implements Mailer {
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

function fileName(messageId: string): string {
  return messageId.replace(/[^A-Za-z0-9._-]/g, '_')
}
