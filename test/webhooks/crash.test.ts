import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { inTransaction } from '#commands/transaction.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import { listEventRows, type Event } from '#webhooks/store.ts'
import { realTimeContext, testEnvironment, type RealTimeContext } from '../support/context.ts'
import { deliverDue } from '../support/deliver-due.ts'
import { aCompletion, anApp, type TestApp } from '../support/factories.ts'
import { Receiver } from '../support/receiver.ts'

// With this timeout, leases last 5 s. It must not run out before the receiver, on a busy machine, has killed the sender.
const HASTY = { BILLING_WEBHOOK_TIMEOUT_MS: '1000', BILLING_WEBHOOK_RETRY_MINUTES: '0,0,0,0,0' }
const ONE_RETRY = { ...HASTY, BILLING_WEBHOOK_RETRY_MINUTES: '0' }
const PATIENT = { ...HASTY, BILLING_WEBHOOK_TIMEOUT_MS: '10000' }

describe('senders that are killed', () => {
  let settings: Record<string, string>
  let ctx: RealTimeContext
  let receiver: Receiver
  let app: TestApp
  const children: ChildProcess[] = []

  beforeEach(async () => {
    receiver = await Receiver.start()
  })
  afterEach(async () => {
    for (const child of children.splice(0)) if (child.exitCode === null) child.kill('SIGKILL')
    await receiver.stop()
  })

  async function use(chosen: Record<string, string>): Promise<void> {
    settings = chosen
    ctx = realTimeContext(settings)
    app = await anApp(ctx, { webhookUrl: receiver.url })
    receiver.secret = app.webhookSecret
  }

  function startSender(): ChildProcess {
    const env = { ...process.env, ...testEnvironment({ ...settings, BILLING_LOG_LEVEL: 'silent' }) }
    const child = spawn(process.execPath, [join(import.meta.dirname, 'sender-process.ts')], { env, stdio: 'inherit' })
    children.push(child)
    return child
  }

  async function emit(count: number): Promise<void> {
    await inTransaction(ctx, async (tx) => {
      for (let i = 0; i < count; i += 1) {
        const data = aCompletion(`u${i}`)
        await emitEvent(tx, { app: app.app, type: 'transaction.completed', data })
      }
    })
  }

  const rows = (): Promise<Event[]> =>
    listEventRows(ctx.db, {
      appId: app.app.id,
      status: null,
      eventType: null,
      externalRef: null,
      since: null,
      order: 'desc',
      after: null,
      limit: 1000,
    })

  async function deliverAll(): Promise<void> {
    while ((await rows()).some(({ deliveryStatus }) => deliveryStatus === 'pending')) {
      await deliverDue(ctx)
      await delay(20)
    }
  }

  it('during an attempt lose nothing, and cost the events that they have only leased ahead no attempt: another sender takes over, with the same event ids', async () => {
    await use(HASTY)
    await emit(10)
    const child = startSender()
    receiver.answer = () => child.kill('SIGKILL')
    await once(child, 'exit')
    const left = await rows()
    // A receiver is sent four at first, and as many are leased behind them.
    expect(left.filter(({ lease }) => lease !== 0)).to.have.length(8)
    expect(left.filter(({ attempts }) => attempts === 1)).to.have.length(4)
    expect(left.filter(({ attempts }) => attempts === 0)).to.have.length(6)
    receiver.answer = 200
    await deliverAll()
    const delivered = await rows()
    expect(delivered.every(({ deliveryStatus, lease }) => deliveryStatus === 'delivered' && lease === 0)).to.equal(true)
    expect(new Set(receiver.received.map(({ eventId }) => eventId)).size).to.equal(10)
    expect(receiver.received.every(({ verified }) => verified)).to.equal(true)
    const costs = delivered.map(({ attempts, retriesLeft }) => [attempts, retriesLeft])
    expect(costs.filter(([attempts]) => attempts === 2)).to.deep.equal(Array(4).fill([2, 4]))
    expect(costs.filter(([attempts]) => attempts === 1)).to.deep.equal(Array(6).fill([1, 5]))
  })

  it('on every attempt of an event exhaust its retries', async () => {
    await use(ONE_RETRY)
    await emit(1)
    for (let crash = 1; crash <= 2; crash += 1) {
      const child = startSender()
      receiver.answer = () => child.kill('SIGKILL')
      await once(child, 'exit')
    }
    receiver.answer = 200
    await deliverAll()
    const [event] = await rows()
    expect(event).to.include({ deliveryStatus: 'failed', attempts: 2, lastError: 'interrupted' })
    expect(receiver.received.map(({ attempt }) => attempt)).to.deep.equal([1, 2])
  })

  it('on SIGTERM finish their attempts and leave no lease', async () => {
    await use(PATIENT)
    await emit(50)
    const child = startSender()
    receiver.answer = (response) => {
      child.kill('SIGTERM')
      response.writeHead(200).end()
    }
    const [code] = (await once(child, 'exit')) as [number]
    expect(code).to.equal(0)
    const left = await rows()
    expect(left.every(({ lease }) => lease === 0)).to.equal(true)
    const delivered = left.filter(({ deliveryStatus }) => deliveryStatus === 'delivered').length
    expect(delivered).to.equal(receiver.received.length)
    await deliverAll()
    expect(receiver.received).to.have.length(50)
  })
})
