import { Worker } from 'node:worker_threads'
import { AppError } from '#shared/errors.ts'
import type { ReadingAnswer, ReadingTask } from './parse-worker.ts'
import type { MailReading } from './read-mail.ts'
import type { TrustSettings } from './trust.ts'

/** Reading a mail takes milliseconds; what takes longer than this was made to. */
const TIME_LIMIT_MS = 2000
const MOST_WAITING = 100
/** Mails come seldom; a thread that waits for them takes memory. */
const IDLE_MS = 60_000

/** Enough for a mail of 256 KB many times over; a worker that wants more dies alone. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 96, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 }

interface Job {
  readonly raw: Buffer
  readonly settings: TrustSettings
  readonly settle: (reading: MailReading | null) => void
  readonly fail: (cause: unknown) => void
}

/**
 * Reads mails one after another in a worker thread, so that none holds the thread that answers requests. A worker that is busy for
 * two seconds or dies is replaced, and the mail that it had counts as one that says nothing.
 */
export class MailReader {
  readonly #timeLimitMs: number
  readonly #workerFile: URL
  readonly #waiting: Job[] = []
  #current: { readonly job: Job; readonly timer: NodeJS.Timeout } | null = null
  #worker: Worker | null = null
  #isReady = false
  #tasks = 0
  #isClosed = false
  #idleTimer: NodeJS.Timeout | null = null

  constructor(options: { readonly timeLimitMs?: number; readonly workerFile?: URL } = {}) {
    this.#timeLimitMs = options.timeLimitMs ?? TIME_LIMIT_MS
    this.#workerFile = options.workerFile ?? new URL('./parse-worker.ts', import.meta.url)
  }

  /** What the mail says; null where it cannot be read. Throws `rate_limited` where too many wait. */
  async read(raw: Buffer, settings: TrustSettings): Promise<MailReading | null> {
    if (this.#isClosed || this.#waiting.length >= MOST_WAITING) {
      throw new AppError('rate_limited', 'too many mails at once', { headers: { 'Retry-After': '10' } })
    }
    return new Promise((settle, fail) => {
      this.#waiting.push({ raw, settings, settle, fail })
      this.#advance()
    })
  }

  /** Ends the worker. Mails that still wait count as unreadable. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const job of this.#waiting.splice(0)) job.settle(null)
    await this.#replaceWorker()
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
    const task: ReadingTask = { id: this.#tasks, raw: job.raw, settings: job.settings }
    const timer = setTimeout(() => void this.#replaceWorker(), this.#timeLimitMs)
    this.#current = { job, timer }
    this.#worker.postMessage(task)
  }

  #rest(): void {
    // A process that has nothing else to do must not be kept alive by it.
    this.#worker?.unref()
    this.#idleTimer ??= setTimeout(() => void this.#replaceWorker(), IDLE_MS).unref()
  }

  #endRest(): void {
    if (this.#idleTimer) clearTimeout(this.#idleTimer)
    this.#idleTimer = null
  }

  #startWorker(): Worker {
    const worker = new Worker(this.#workerFile, { resourceLimits: RESOURCE_LIMITS })
    worker.on('message', (message: 'ready' | ReadingAnswer) => {
      if (worker !== this.#worker) return
      if (message === 'ready') this.#isReady = true
      else if (message.id === this.#tasks) this.#finish(message.reading)
      this.#advance()
    })
    worker.on('error', (error) => {
      if (worker !== this.#worker) return
      // A worker that never came up would not come up the next time: that is our fault, not the mail's.
      if (!this.#isReady) for (const job of this.#waiting.splice(0)) job.fail(error)
      void this.#replaceWorker()
    })
    return worker
  }

  async #replaceWorker(): Promise<void> {
    const worker = this.#worker
    this.#worker = null
    this.#isReady = false
    this.#endRest()
    this.#finish(null)
    if (this.#waiting.length > 0) this.#advance()
    await worker?.terminate()
  }

  #finish(reading: MailReading | null): void {
    if (!this.#current) return
    clearTimeout(this.#current.timer)
    this.#current.job.settle(reading)
    this.#current = null
  }
}
