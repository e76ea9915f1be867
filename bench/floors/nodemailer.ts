import nodemailer from 'nodemailer'
import { answerOrders } from '../worker.ts'

export interface MailOrder {
  readonly url: string
  readonly mail: {
    readonly from: string
    readonly to: string
    readonly subject: string
    readonly text: string
    readonly html: string
  }
  readonly count: number
}

const CONNECTIONS = 5

/** Sends the same ready mail so many times; how long it took. */
answerOrders(async ({ url, mail, count }: MailOrder): Promise<number> => {
  const transport = nodemailer.createTransport({ url, pool: true, maxConnections: CONNECTIONS, maxMessages: Infinity })
  const startedMs = performance.now()
  let left = count
  const send = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      await transport.sendMail(mail)
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, send))
  const elapsedMs = performance.now() - startedMs
  transport.close()
  return elapsedMs
})
