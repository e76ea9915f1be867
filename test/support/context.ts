import { Writable } from 'node:stream'
import { pino } from 'pino'
import { loadConfig, type Config } from '#config/config.ts'
import type { Context, MetricName } from '#context.ts'
import type { Database } from '#db/connect.ts'
import { parseKeyring } from '#shared/crypto.ts'
import { describeError, openLog } from '#shared/log.ts'
import {
  addMs,
  asRealTime,
  DAY_MS,
  formatTimestamp,
  parseDuration,
  parseTimestamp,
  systemClock,
  type Clock,
  type RealTime,
} from '#shared/time.ts'
import { testDatabase, type TestDb } from './database.ts'
import { scratchFolder } from './scratch.ts'

/** A clock that does not run until a test moves it. */
export class TestClock implements Clock {
  #nowMs: number

  constructor(start = '2026-03-01 10:00:00') {
    this.#nowMs = instantOf(start).getTime()
  }

  /** A clock that stands at the present second. */
  static present(): TestClock {
    return TestClock.daysAgo(0)
  }

  static daysAgo(days: number): TestClock {
    return new TestClock(formatTimestamp(addMs(systemClock.now(), -days * DAY_MS)))
  }

  now(): RealTime {
    return asRealTime(new Date(this.#nowMs))
  }

  /** The database's clock moves with it. */
  get database(): this {
    return this
  }

  /** `advance('3d')`; also `s`, `m`, `h`, `w`. */
  advance(duration: string): void {
    const ms = parseDuration(duration)
    if (ms === null) throw new Error(`no duration: ${duration}`)
    this.#nowMs += ms
  }

  /** Less than a second. */
  advanceMs(ms: number): void {
    this.#nowMs += ms
  }

  /** `set('2026-03-31 00:00:00')` in UTC. */
  set(timestamp: string): void {
    this.#nowMs = instantOf(timestamp).getTime()
  }

  /** For a service beside programs, which have the machine's clock. */
  setToPresent(): void {
    this.set(formatTimestamp(systemClock.now()))
  }
}

/** The clock of a machine that is wrong by this offset; the database's clock is right. */
export function wrongClock(offsetMs: number): Clock {
  return { now: () => addMs(systemClock.now(), offsetMs) }
}

function instantOf(timestamp: string): Date {
  const instant = parseTimestamp(timestamp)
  if (!instant) throw new Error(`no timestamp: ${timestamp}`)
  return instant
}

export interface TestContext extends Context {
  readonly db: TestDb
  readonly clock: TestClock
  /** Every log line that was written, as text. */
  readonly logged: string[]
  readonly counted: { metric: MetricName; labels: Readonly<Record<string, string>> }[]
}

/** One key for the whole run, so that sealed secrets open in child processes too. */
export const TEST_KEYS = `test:${Buffer.alloc(32, 7).toString('base64')}`

/** The environment of a child process that works on the test database. */
export function testEnvironment(overrides: Readonly<Record<string, string>> = {}): Record<string, string> {
  const compiled = process.env['NODE_COMPILE_CACHE']
  return {
    ...(compiled === undefined ? {} : { NODE_COMPILE_CACHE: compiled }),
    BILLING_ENV: 'development',
    BILLING_DATABASE_URL: testDatabase().url,
    BILLING_HOME: scratchFolder('home'),
    BILLING_ENCRYPTION_KEYS: TEST_KEYS,
    BILLING_RATE_LIMIT_PER_SECOND: '0',
    ...overrides,
  }
}

/** The parts of a context that a transaction needs, on any database. `onCount` is called for each retry. */
export function contextOn(db: Database, onCount: () => void = () => undefined): Context {
  const parts = { db, clock: systemClock, log: openLog('silent'), count: onCount, wakeSender: () => undefined }
  return parts as unknown as Context
}

/** A context on the test database. `settings` are environment variables; `config` replaces parsed settings. */
export function testContext(
  settings: Readonly<Record<string, string>> = {},
  config: Partial<Config> = {},
  clock: TestClock = new TestClock(),
): TestContext {
  const logged: string[] = []
  const counted: TestContext['counted'] = []
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      logged.push(chunk.toString('utf8'))
      done()
    },
  })
  return {
    config: { ...loadConfig(testEnvironment(settings)), ...config },
    db: testDatabase().db,
    clock,
    log: pino({ level: 'trace', serializers: { error: describeError, err: describeError } }, sink),
    keyring: parseKeyring(TEST_KEYS),
    wakeSender: () => undefined,
    count: (metric, labels = {}) => void counted.push({ metric, labels }),
    logged,
    counted,
  }
}

/** As `testContext`, with a clock that stands at the present second, as those of the programs beside it, until a test moves it. */
export function presentContext(settings: Readonly<Record<string, string>> = {}): TestContext {
  return testContext(settings, {}, TestClock.present())
}

/** A context whose clock is the machine's. */
export type RealTimeContext = Omit<TestContext, 'clock'> & Context

/** As `testContext`, with the machine's clock, as the programs beside it. */
export function realTimeContext(settings: Readonly<Record<string, string>> = {}): RealTimeContext {
  return { ...testContext(settings), clock: systemClock }
}
