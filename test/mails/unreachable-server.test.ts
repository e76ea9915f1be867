import { expect } from 'chai'
import { describe, it } from 'mocha'
import { MailError, type Mail, type Mailer } from '#mail/mail.ts'
import { Stopped, type MailQueue, type Outcome } from '#mails/mail-queue.ts'
import { RECEIPTS } from '#mails/mail-kinds.ts'
import { sendMails } from '#mails/send-mails.ts'
import { asRealTime } from '#shared/time.ts'
import { testContext } from '../support/context.ts'

describe('a mail server that is unreachable', () => {
  const dead: Mailer = {
    send: () => Promise.reject(new MailError('unreachable', new Error('connect ECONNREFUSED'))),
    verify: () => Promise.resolve(),
    close: () => undefined,
  }

  async function* numbers(): AsyncGenerator<number> {
    for (let number = 1; number <= 200; number += 1) yield await Promise.resolve(number)
  }

  it('ends the sweep after a few mails, though others between them are stopped before they reach it', async () => {
    const ctx = testContext()
    const outcomes: Outcome[] = []
    const queue: MailQueue<number> = {
      kind: RECEIPTS,
      due: numbers(),
      claim: (mails) =>
        Promise.resolve(
          mails.map((due) => {
            const claimedAt = asRealTime(ctx.clock.now())
            return { due, claim: { table: RECEIPTS.table, id: due, appId: 1, failures: 0, claimedAt, countedOn: null } }
          }),
        ),
      compose: (due) =>
        due % 4 === 0
          ? Promise.resolve({ to: [{ name: '', address: 'an@example.com' }] } as unknown as Mail)
          : Promise.reject(new Stopped({ isFinal: true })),
      stillDue: () => null,
      recordSent: () => Promise.resolve(),
      stop: () => Promise.resolve(),
      recordOutcome: (_due, outcome) => void outcomes.push(outcome),
    }
    await sendMails(ctx, { mailer: dead, signal: new AbortController().signal, unreachableInARow: 0 }, queue)
    expect(outcomes.filter((outcome) => outcome === 'failed').length).to.be.within(3, 3 + 4)
  })
})
