import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { inTransaction } from '#commands/transaction.ts'
import { systemClock } from '#shared/time.ts'
import { deliverDue } from '#webhooks/deliver-due.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import { testContext, type TestContext } from '../support/context.ts'
import { anApp } from '../support/factories.ts'
import { Receiver } from '../support/receiver.ts'
import { countStatements, type Counted } from './counted.ts'

const BATCH = 50
/** Each app's receiver is sent so many at once before it has answered. */
const AT_ONCE = 4

describe('statement budgets of what is sent', () => {
  let ctx: TestContext
  let receiver: Receiver
  let counted: Counted

  beforeEach(async () => {
    ctx = Object.assign(testContext(), { clock: systemClock })
    receiver = await Receiver.start()
  })
  afterEach(async () => {
    await counted.close()
    await receiver.stop()
  })

  /** Writes due webhooks of several apps. */
  async function emit(count: number): Promise<void> {
    for (let left = count; left > 0; left -= AT_ONCE) {
      const { app } = await anApp(ctx, { webhookUrl: receiver.url })
      const data = { external_ref: 'u', plan_ref: 'pro', amount: 1, currency: 'VND', status: 'completed' } as const
      await inTransaction(ctx, async (tx) => {
        for (let number = 0; number < Math.min(left, AT_ONCE); number += 1)
          await emitEvent(tx, app, 'transaction.completed', data, { externalRef: null, transactionId: null })
      })
    }
  }

  it('a batch of 50 webhooks takes 12: they are found, claimed, signed and recorded', async () => {
    const answers: (() => void)[] = []
    // Answers when all have come: how fast the machine is does not count.
    receiver.answer = (response) => {
      answers.push(() => response.writeHead(200).end())
      if (answers.length === BATCH) for (const answer of answers) answer()
    }
    await emit(BATCH)
    counted = await countStatements(ctx)
    expect(await counted.atMost(12, () => deliverDue(ctx))).to.include({ delivered: BATCH })
  })
})
