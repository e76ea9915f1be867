import { Worker } from 'node:worker_threads'
import { AppError } from '#shared/errors.ts'
import type { ReadingAnswer, ReadingTask } from './parse-worker.ts'
import type { MailReading } from './read-mail.ts'
import type { TrustSettings } from './trust.ts'

/** Maximum CPU time for one mail. Reading a genuine mail takes milliseconds. */
const CPU_LIMIT_MS = 2000
/** Maximum time by the clock, for a worker that neither computes nor answers. Far more than a busy machine needs. */
const WALL_LIMIT_MS = 60_000
/** Maximum time by the clock for a worker to start. */
const START_LIMIT_MS = 60_000
const CHECKS = 8
const MAX_WAITING = 100
/** Mails are rare, and an idle thread takes memory. */
const IDLE_MS = 60_000

/** Many times what a mail of 256 KB needs. A worker that exceeds it ends, but the process continues. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 96, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 }

/** A mail could not be read. The relay must send it again. */
export class MailNotRead extends Error {
  override readonly name = 'MailNotRead'
  /** Whether the mail itself may be the cause: its reading took too long, or its worker died. False if the service stops. */
  readonly mayBeCausedByMail: boolean

  constructor(message: string, options: { readonly mayBeCausedByMail: boolean }) {
    super(message)
    this.mayBeCausedByMail = options.mayBeCausedByMail
  }
}

const DIED = new MailNotRead('its worker died', { mayBeCausedByMail: true })
const NOT_STARTED = new MailNotRead('its worker did not start', { mayBeCausedByMail: false })
const TOO_LONG = new MailNotRead('it took too long', { mayBeCausedByMail: true })

interface Job {
  readonly raw: Buffer
  readonly resolve: (reading: MailReading) => void
  readonly reject: (cause: unknown) => void
}

/**
 * Reads mails one after another in a worker thread, so that none blocks the thread that answers requests. A worker that uses two
 * seconds of CPU time for a mail, never answers, or dies is replaced, and reading that mail throws `MailNotRead`. The clock
 * hardly counts, because a genuine mail may take long on a busy machine.
 */
export class MailReader {
  readonly #settings: TrustSettings
  readonly #cpuLimitMs: number
  readonly #wallLimitMs: number
  readonly #startLimitMs: number
  readonly #workerFile: URL
  readonly #waiting: Job[] = []
  #current: { readonly job: Job; readonly timer: NodeJS.Timeout } | null = null
  #worker: Worker | null = null
  #isReady = false
  #tasks = 0
  #isClosed = false
  #idleTimer: NodeJS.Timeout | null = null

  /** Each worker gets `settings` once, when it starts. */
  constructor(
    settings: TrustSettings,
    options: {
      readonly cpuLimitMs?: number
      readonly wallLimitMs?: number
      readonly startLimitMs?: number
      readonly workerFile?: URL
    } = {},
  ) {
    const { authservIds, trustedForwarders, trustedArcSealers } = settings
    // The thread that parses strangers' mails gets no secret of the relay.
    this.#settings = { authservIds, trustedForwarders, trustedArcSealers }
    this.#cpuLimitMs = options.cpuLimitMs ?? CPU_LIMIT_MS
    this.#wallLimitMs = options.wallLimitMs ?? WALL_LIMIT_MS
    this.#startLimitMs = options.startLimitMs ?? START_LIMIT_MS
    this.#workerFile = options.workerFile ?? new URL('./parse-worker.ts', import.meta.url)
  }

  /** Reads a mail. Throws `MailNotRead`, and `rate_limited` if too many mails wait. */
  async read(raw: Buffer): Promise<MailReading> {
    if (this.#isClosed || this.#waiting.length >= MAX_WAITING) {
      throw new AppError('rate_limited', 'too many mails at once', { headers: { 'Retry-After': '10' } })
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ raw, resolve, reject })
      this.#advance()
    })
  }

  /** Ends the worker. Waiting mails fail with `MailNotRead`. */
  async close(): Promise<void> {
    this.#isClosed = true
    const stopped = new MailNotRead('the service stops', { mayBeCausedByMail: false })
    for (const job of this.#waiting.splice(0)) job.reject(stopped)
    await this.#replaceWorker(stopped)
  }

  #advance(): void {
    if (this.#current) return
    if (this.#waiting.length === 0) {
      this.#idle()
      return
    }
    this.#endIdle()
    this.#worker ??= this.#startWorker()
    this.#worker.ref()
    if (!this.#isReady) return
    const job = this.#waiting.shift() as Job
    this.#tasks += 1
    const task: ReadingTask = { id: this.#tasks, raw: job.raw }
    this.#current = { job, timer: this.#startTimer(this.#worker, job) }
    this.#worker.postMessage(task)
  }

  /** Counts the clock in parts, so that a pause of this thread or of the machine, however long, counts as one part. */
  #startTimer(worker: Worker, job: Job): NodeJS.Timeout {
    const partMs = Math.min(this.#cpuLimitMs, this.#wallLimitMs) / CHECKS
    let left = Math.ceil(this.#wallLimitMs / partMs)
    const begun = cpuMsOf(worker)
    return setInterval(() => {
      left -= 1
      if (left <= 0) void this.#replaceWorker(TOO_LONG)
      else void this.#checkCpu(worker, job, begun)
    }, partMs)
  }

  async #checkCpu(worker: Worker, job: Job, begun: Promise<number>): Promise<void> {
    const usedMs = (await cpuMsOf(worker)) - (await begun)
    if (usedMs > this.#cpuLimitMs && this.#current?.job === job) await this.#replaceWorker(TOO_LONG)
  }

  #idle(): void {
    // An idle worker must not keep the process alive.
    this.#worker?.unref()
    this.#idleTimer ??= setTimeout(() => void this.#replaceWorker(DIED), IDLE_MS).unref()
  }

  #endIdle(): void {
    if (this.#idleTimer) clearTimeout(this.#idleTimer)
    this.#idleTimer = null
  }

  #startWorker(): Worker {
    const worker = new Worker(this.#workerFile, { workerData: this.#settings, resourceLimits: RESOURCE_LIMITS })
    setTimeout(() => this.#giveUpStart(worker, NOT_STARTED), this.#startLimitMs).unref()
    worker.on('message', (message: 'ready' | ReadingAnswer) => {
      if (worker !== this.#worker) return
      if (message === 'ready') this.#isReady = true
      else if (message.id === this.#tasks) this.#finish(message.reading ?? DIED)
      this.#advance()
    })
    worker.on('error', (error) => {
      this.#giveUpStart(worker, error)
      if (worker === this.#worker) void this.#replaceWorker(DIED)
    })
    worker.on('exit', () => {
      this.#giveUpStart(worker, NOT_STARTED)
      if (worker === this.#worker) void this.#replaceWorker(DIED)
    })
    return worker
  }

  /** A worker that does not start is our failure, not the mails', and the next one would not start either. */
  #giveUpStart(worker: Worker, cause: unknown): void {
    if (worker !== this.#worker || this.#isReady) return
    for (const job of this.#waiting.splice(0)) job.reject(cause)
    void this.#replaceWorker(DIED)
  }

  async #replaceWorker(cause: MailNotRead): Promise<void> {
    const worker = this.#worker
    this.#worker = null
    this.#isReady = false
    this.#endIdle()
    this.#finish(cause)
    if (this.#waiting.length > 0) this.#advance()
    await worker?.terminate()
  }

  #finish(outcome: MailReading | MailNotRead): void {
    if (!this.#current) return
    const { job, timer } = this.#current
    this.#current = null
    clearInterval(timer)
    if (outcome instanceof MailNotRead) job.reject(outcome)
    else job.resolve(outcome)
  }
}

/** The CPU time that the worker has used; 0 if it has ended. */
async function cpuMsOf(worker: Worker): Promise<number> {
  try {
    const { user, system } = await worker.cpuUsage()
    return (user + system) / 1000
  } catch {
    return 0
  }
}
