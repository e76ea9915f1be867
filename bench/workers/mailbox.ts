import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { answerOrders } from '../worker.ts'

export interface MailboxState {
  readonly url: string
  /** Mails since the last order. */
  readonly mails: number
}

let mails = 0

const server = new SMTPServer({
  authOptional: true,
  disabledCommands: ['AUTH', 'STARTTLS'],
  disableReverseLookup: true,
  logger: false,
  onData: (stream, _session, done) => {
    stream.resume()
    stream.on('end', () => {
      mails += 1
      done()
    })
  },
})
const listening = server.listen(0, '127.0.0.1')
const started = new Promise((resolve) => listening.once('listening', resolve))

/** A mail server that accepts everything; reports the number of mails and resets it. */
answerOrders(async (): Promise<MailboxState> => {
  await started
  const state = { url: `smtp://127.0.0.1:${(listening.address() as AddressInfo).port}`, mails }
  mails = 0
  return state
})
