import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { inTransaction } from '#commands/transaction.ts'
import type { Context } from '#context.ts'
import { addMs, SECOND_MS, systemClock } from '#shared/time.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import { type ApiError, ConnectionError, parseTime, Paygate, type FollowOptions } from '../../client/src/index.ts'
import { startService, type TestService } from '../support/api.ts'
import { TestClock, wrongClock } from '../support/context.ts'
import { aCompletion, anApp, type TestApp } from '../support/factories.ts'
import { until } from '../support/until.ts'

describe('the client, where it follows events', () => {
  let service: TestService
  let ctx: Context
  let app: TestApp
  let paygate: Paygate
  let requests: URL[]
  /** What the next requests meet instead of the service. */
  let outages: (() => Promise<Response>)[]
  let stop: AbortController
  /** Whom the events that were yielded are about, and the cursor of each. */
  let shown: { readonly ref: string; readonly cursor: string }[]
  let following: Promise<void>

  beforeEach(async () => {
    service = await startService({}, TestClock.present())
    ctx = { ...service.ctx, clock: systemClock }
    app = await anApp(ctx)
    requests = []
    outages = []
    stop = new AbortController()
    shown = []
    following = Promise.resolve()
    paygate = new Paygate({
      baseUrl: service.url,
      apiKey: app.apiKey,
      apiSecret: app.secret,
      maxRetries: 0,
      fetch: (url, init) => {
        requests.push(new URL(url))
        return outages.shift()?.() ?? fetch(url, init)
      },
    })
  })

  afterEach(async () => {
    stop.abort()
    await following.catch(() => undefined)
    await service.stop()
  })

  const refs = (): string[] => shown.map(({ ref }) => ref)
  const untilShown = (ref: string): Promise<unknown> => until(() => refs().includes(ref))

  function follow(options: FollowOptions = {}): void {
    const show = async (): Promise<void> => {
      const events = paygate.events.follow({ pollSeconds: 0.01, signal: stop.signal, ...options })
      for await (const { event, cursor } of events) shown.push({ ref: event.data.external_ref ?? '', cursor })
    }
    following = show()
  }

  /** Writes an event in a transaction that commits when `ready` resolves. */
  async function emit(ref: string, by: Context = ctx, ready: () => Promise<unknown> = () => Promise.resolve()) {
    await inTransaction(by, async (tx) => {
      await emitEvent(tx, { app: app.app, type: 'transaction.completed', data: aCompletion(ref) })
      await ready()
    })
  }

  /** As a clock that is as many seconds behind would date it. */
  const emitDated = (ref: string, secondsAgo: number): Promise<void> =>
    emit(ref, { ...ctx, clock: wrongClock(-secondsAgo * SECOND_MS) })

  async function caughtUp(from: string | Date | null): Promise<string[]> {
    const found: string[] = []
    for await (const { event } of paygate.events.catchUp({ from })) found.push(event.data.external_ref ?? '')
    return found
  }

  it('begins now where nothing says from when, and yields each event once, also one that becomes visible late', async () => {
    await emit('before')
    const written = Promise.withResolvers<undefined>()
    const commit = Promise.withResolvers<undefined>()
    const late = emit('late', { ...ctx, clock: wrongClock(-60 * SECOND_MS) }, () => {
      written.resolve(undefined)
      return commit.promise
    })
    await written.promise
    follow()
    await until(() => requests.length > 2)
    await emit('on-time')
    await untilShown('on-time')
    commit.resolve(undefined)
    await late
    await untilShown('late')
    await emit('last')
    await untilShown('last')
    expect(refs()).to.deep.equal(['on-time', 'late', 'last'])
  })

  it('yields the first event of an app that had none', async () => {
    follow()
    await until(() => requests.length > 2)
    await emit('first')
    await untilShown('first')
    expect(refs()).to.deep.equal(['first'])
  })

  it('goes on after a restart by the stored cursor, with what became visible late meanwhile', async () => {
    await emitDated('one', 120)
    await emitDated('two', 60)
    follow({ from: new Date(0) })
    await untilShown('two')
    stop.abort()
    await following
    await emitDated('late', 100)
    await emitDated('three', 30)
    const { cursor } = shown.at(-1)!
    shown = []
    stop = new AbortController()
    follow({ from: cursor })
    await untilShown('three')
    expect(refs().filter((ref) => ['late', 'three'].includes(ref))).to.deep.equal(['late', 'three'])
  })

  it('reads as much again as it is told, and keeps it in the cursor', async () => {
    await emitDated('one', 600)
    for (const overlapSeconds of [0, 300, 900]) {
      for await (const { event, cursor } of paygate.events.catchUp({ overlapSeconds }))
        expect(parseTime(event.created_at).getTime() - parseTime(cursor).getTime()).to.equal(overlapSeconds * 1000)
    }
  })

  it('begins with the events of the second that it is given', async () => {
    const secondsAgo = (seconds: number): Date => addMs(systemClock.now(), -seconds * SECOND_MS)
    await emitDated('old', 90)
    await emitDated('new', 30)
    const { data } = await paygate.events.list()
    expect(await caughtUp(secondsAgo(60))).to.deep.equal(['new'])
    expect(await caughtUp(data[0]!.created_at)).to.deep.equal(['new'])
    expect(await caughtUp(null)).to.deep.equal(['old', 'new'])
  })

  it('catches up in order over many pages, and ends', async () => {
    const expected = Array.from({ length: 230 }, (_, index) => `user-${index}`)
    for (const ref of expected) await emit(ref)
    expect(await caughtUp(null)).to.deep.equal(expected)
    expect(requests.length).to.equal(3)
  })

  it('yields what becomes visible late in an overlap of many pages, which it reads less often', async () => {
    for (let index = 0; index < 120; index += 1) await emit(`user-${index}`)
    follow({ from: new Date(0) })
    await untilShown('user-119')
    await emitDated('late', 60)
    await emit('last')
    await untilShown('last')
    await untilShown('late')
    expect(new Set(refs()).size).to.equal(shown.length)
  })

  it('misses nothing where the time of a sandbox jumps while a transaction is under way', async () => {
    await emit('first')
    const written = Promise.withResolvers<undefined>()
    const commit = Promise.withResolvers<undefined>()
    const late = emit('late', ctx, () => {
      written.resolve(undefined)
      return commit.promise
    })
    await written.promise
    follow()
    await until(() => requests.length > 2)
    await emit('jumped', { ...ctx, clock: wrongClock(86_400 * SECOND_MS) })
    await untilShown('jumped')
    commit.resolve(undefined)
    await late
    await untilShown('late')
    const { cursor } = shown[0]!
    expect(await caughtUp(cursor)).to.include.members(['late', 'jumped'])
  })

  it('waits for a service that is away, and throws what it refuses', async () => {
    follow()
    await until(() => requests.length > 1)
    outages = [() => Promise.reject(new Error('connect ECONNREFUSED'))]
    await emit('after')
    await untilShown('after')
    outages = [
      () =>
        Promise.resolve(
          Response.json({ success: false, error: { code: 'unauthorized', message: 'no' } }, { status: 401 }),
        ),
    ]
    const error = await following.catch((thrown: unknown) => thrown)
    expect((error as ApiError).code).to.equal('unauthorized')
  })

  it('throws at once if the service cannot be reached at the beginning', async () => {
    outages = [() => Promise.reject(new Error('connect ECONNREFUSED'))]
    follow()
    expect(await following.catch((thrown: unknown) => thrown)).to.be.instanceOf(ConnectionError)
  })

  it('ends with the signal, without an error', async () => {
    follow()
    await until(() => requests.length > 1)
    stop.abort()
    await following
    for await (const followed of paygate.events.follow({ signal: stop.signal })) expect(followed).to.equal(null)
  })
})
