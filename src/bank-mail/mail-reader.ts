import { Worker } from 'node:worker_threads'
import { AppError } from '#shared/errors.ts'
import type { ReadingAnswer, ReadingTask } from './parse-worker.ts'
import type { MailReading } from './read-mail.ts'
import type { TrustSettings } from './trust.ts'

/** Reading a mail takes milliseconds; what takes longer than this was made to. */
const TIME_LIMIT_MS = 2000
const TIME_PARTS = 8
const MOST_WAITING = 100
/** Mails come seldom; a thread that waits for them takes memory. */
const IDLE_MS = 60_000

/** Enough for a mail of 256 KB many times over; a worker that wants more dies alone. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 96, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 }

/** A mail that was not read. Nothing is known of it, so that it must come again. */
export class MailNotRead extends Error {
  override readonly name = 'MailNotRead'
  /** Whether the mail itself may be why: its reading took too long, or its worker died. False where we stop. */
  readonly isMailsDoing: boolean

  constructor(message: string, options: { readonly isMailsDoing: boolean }) {
    super(message)
    this.isMailsDoing = options.isMailsDoing
  }
}

const DIED = new MailNotRead('its worker died', { isMailsDoing: true })

interface Job {
  readonly raw: Buffer
  readonly settle: (reading: MailReading) => void
  readonly fail: (cause: unknown) => void
}

/**
 * Reads mails one after another in a worker thread, so that none holds the thread that answers requests. A worker that is busy for
 * two seconds or dies is replaced, and the mail that it had is `MailNotRead`.
 */
export class MailReader {
  readonly #settings: TrustSettings
  readonly #timeLimitMs: number
  readonly #workerFile: URL
  readonly #waiting: Job[] = []
  #current: { readonly job: Job; readonly timer: NodeJS.Timeout } | null = null
  #worker: Worker | null = null
  #isReady = false
  #tasks = 0
  #isClosed = false
  #idleTimer: NodeJS.Timeout | null = null

  /** `settings` are handed to each worker once, when it starts. */
  constructor(settings: TrustSettings, options: { readonly timeLimitMs?: number; readonly workerFile?: URL } = {}) {
    const { authservIds, trustedForwarders, trustedArcSealers } = settings
    // These alone: no secret of the relay goes to the thread that parses strangers' mails.
    this.#settings = { authservIds, trustedForwarders, trustedArcSealers }
    this.#timeLimitMs = options.timeLimitMs ?? TIME_LIMIT_MS
    this.#workerFile = options.workerFile ?? new URL('./parse-worker.ts', import.meta.url)
  }

  /** What the mail says. Throws `MailNotRead`, and `rate_limited` where too many wait. */
  async read(raw: Buffer): Promise<MailReading> {
    if (this.#isClosed || this.#waiting.length >= MOST_WAITING) {
      throw new AppError('rate_limited', 'too many mails at once', { headers: { 'Retry-After': '10' } })
    }
    return new Promise((settle, fail) => {
      this.#waiting.push({ raw, settle, fail })
      this.#advance()
    })
  }

  /** Ends the worker. Mails that still wait must come again. */
  async close(): Promise<void> {
    this.#isClosed = true
    const stopped = new MailNotRead('the service stops', { isMailsDoing: false })
    for (const job of this.#waiting.splice(0)) job.fail(stopped)
    await this.#replaceWorker(stopped)
  }

  #advance(): void {
    if (this.#current) return
    if (this.#waiting.length === 0) {
      this.#rest()
      return
    }
    this.#endRest()
    this.#worker ??= this.#startWorker()
    this.#worker.ref()
    if (!this.#isReady) return
    const job = this.#waiting.shift() as Job
    this.#tasks += 1
    const task: ReadingTask = { id: this.#tasks, raw: job.raw }
    this.#current = { job, timer: this.#startTimer() }
    this.#worker.postMessage(task)
  }

  /** Counts the time in parts, so that a standstill of this thread or of the machine, however long, counts as one of them. */
  #startTimer(): NodeJS.Timeout {
    let left = TIME_PARTS
    return setInterval(() => {
      left -= 1
      if (left === 0) void this.#replaceWorker(new MailNotRead('it took too long', { isMailsDoing: true }))
    }, this.#timeLimitMs / TIME_PARTS)
  }

  #rest(): void {
    // A process that has nothing else to do must not be kept alive by it.
    this.#worker?.unref()
    this.#idleTimer ??= setTimeout(() => void this.#replaceWorker(DIED), IDLE_MS).unref()
  }

  #endRest(): void {
    if (this.#idleTimer) clearTimeout(this.#idleTimer)
    this.#idleTimer = null
  }

  #startWorker(): Worker {
    const worker = new Worker(this.#workerFile, { workerData: this.#settings, resourceLimits: RESOURCE_LIMITS })
    worker.on('message', (message: 'ready' | ReadingAnswer) => {
      if (worker !== this.#worker) return
      if (message === 'ready') this.#isReady = true
      else if (message.id === this.#tasks) this.#finish(message.reading ?? DIED)
      this.#advance()
    })
    worker.on('error', (error) => {
      if (worker !== this.#worker) return
      // A worker that never came up would not come up the next time: that is our fault, not the mail's.
      if (!this.#isReady) for (const job of this.#waiting.splice(0)) job.fail(error)
      void this.#replaceWorker(DIED)
    })
    worker.on('exit', () => {
      if (worker !== this.#worker) return
      if (!this.#isReady) for (const job of this.#waiting.splice(0)) job.fail(DIED)
      void this.#replaceWorker(DIED)
    })
    return worker
  }

  async #replaceWorker(cause: MailNotRead): Promise<void> {
    const worker = this.#worker
    this.#worker = null
    this.#isReady = false
    this.#endRest()
    this.#finish(cause)
    if (this.#waiting.length > 0) this.#advance()
    await worker?.terminate()
  }

  #finish(outcome: MailReading | MailNotRead): void {
    if (!this.#current) return
    const { job, timer } = this.#current
    this.#current = null
    clearInterval(timer)
    if (outcome instanceof MailNotRead) job.fail(outcome)
    else job.settle(outcome)
  }
}
