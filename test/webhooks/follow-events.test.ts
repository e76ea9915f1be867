import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { inTransaction } from '#commands/transaction.ts'
import type { Context } from '#context.ts'
import { addMs, HOUR_MS, systemClock, type RealTime } from '#shared/time.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import { followEvents } from '#webhooks/follow-events.ts'
import { realTimeContext, wrongClock } from '../support/context.ts'
import { aCompletion, anApp, type TestApp } from '../support/factories.ts'

describe('following the events of an app', () => {
  let ctx: Context
  let app: TestApp
  let stop: AbortController
  /** Whom the events that were shown are about, in their order. */
  let shown: string[]
  let following: Promise<void>

  beforeEach(async () => {
    ctx = realTimeContext()
    app = await anApp(ctx)
    stop = new AbortController()
    shown = []
  })
  afterEach(async () => {
    stop.abort()
    await following
  })

  function follow(since: RealTime | null = null): void {
    const show = async () => {
      for await (const { externalRef } of followEvents(ctx, app.app, { since, signal: stop.signal }))
        shown.push(externalRef ?? '')
    }
    following = show()
  }

  /** Writes an event in a transaction that commits when `ready` resolves. */
  function emit(
    externalRef: string,
    by: Context = ctx,
    ready: () => Promise<unknown> = () => Promise.resolve(),
  ): Promise<void> {
    const data = aCompletion(externalRef)
    return inTransaction(by, async (tx) => {
      await emitEvent(tx, { app: app.app, type: 'transaction.completed', data })
      await ready()
    })
  }

  /** Writes an event in a transaction that has yet to commit. Returns what commits it. */
  async function beginEmit(externalRef: string): Promise<() => Promise<void>> {
    const written = Promise.withResolvers<undefined>()
    const commit = Promise.withResolvers<undefined>()
    const committed = emit(externalRef, ctx, () => {
      written.resolve(undefined)
      return commit.promise
    })
    await written.promise
    return () => {
      commit.resolve(undefined)
      return committed
    }
  }

  /** Events are written until one is shown, since nothing says when following has begun. Returns whom they are about. */
  async function emitUntilShown(): Promise<string[]> {
    const written: string[] = []
    while (shown.length === 0) {
      written.push(`on-time-${written.length}`)
      await emit(written.at(-1) ?? '')
    }
    return written
  }

  const untilShown = async (externalRef: string): Promise<void> => {
    while (!shown.includes(externalRef)) await new Promise(setImmediate)
  }

  it('shows an event whose transaction began before, and commits after later ones, and each event once', async () => {
    await emit('before')
    const commit = await beginEmit('late')
    follow()
    const written = await emitUntilShown()
    await commit()
    await untilShown('late')
    await emit('last')
    await untilShown('last')
    expect(shown).to.have.members([...written.slice(written.indexOf(shown[0] ?? '')), 'late', 'last'])
  })

  it('begins with the events since a time, and shows what commits late', async () => {
    await emit('first')
    const commit = await beginEmit('late')
    await emit('second')
    follow(addMs(systemClock.now(), -HOUR_MS))
    await untilShown('second')
    await commit()
    await untilShown('late')
    expect(shown).to.deep.equal(['first', 'second', 'late'])
  })

  it('shows the events of a daemon whose clock is hours behind', async () => {
    follow()
    await emitUntilShown()
    await emit('dated-early', { ...ctx, clock: wrongClock(-10 * HOUR_MS) })
    await untilShown('dated-early')
    expect(new Set(shown).size).to.equal(shown.length)
  })
})
