import type { Agent, Dispatcher } from 'undici'
import { startDeadline } from '#shared/time.ts'
import { outboundFailureOf, type OutboundFailure } from './outbound-failure.ts'

/** How much of an answer's body is read, and how much of that is kept. */
const READ_BYTES = 16 * 1024
export const HEAD_BYTES = 2 * 1024
/** A response may be preceded by informational ones (RFC 9110, 15.2), but not by a flood of them. */
const MAX_INFORMATIONAL = 20

/** Where a post goes. */
export interface Target {
  readonly origin: string
  readonly path: string
}

export interface GuardedPost {
  /** The owner of the receiver. Owners never share connections. */
  readonly ownerId: number
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** From the start of name resolution to the last byte of the answer. */
  readonly deadlineMs: number
}

/**
 * The outcome of a post: the answer's status, or why there is none. A status together with `timeout` means that the rest of the answer did
 * not arrive.
 */
export interface PostOutcome {
  readonly httpStatus: number | null
  readonly failure: OutboundFailure | null
  /** The beginning of the answer's body: at most 2 KiB of UTF-8 without control characters. */
  readonly responseHead: string | null
  readonly durationMs: number
}

/**
 * One attempt under way: gathers the answer, and ends at the deadline, by an interruption, or when enough is read. Uses undici's handler
 * rather than its streams: most answers have no body, and a stream costs half of the whole attempt. It is a class, because closures for
 * each attempt would cost more than their work.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #startedMs = performance.now()
  readonly #cancelDeadline: () => void
  readonly #onEnd: (outcome: PostOutcome) => void
  #chunks: Buffer[] | null = null
  #size = 0
  #httpStatus: number | null = null
  #informational = 0
  #isOver = false
  #controller: Dispatcher.DispatchController | null = null

  constructor(deadlineMs: number, onEnd: (outcome: PostOutcome) => void) {
    this.#onEnd = onEnd
    this.#cancelDeadline = startDeadline(deadlineMs, () => this.breakOff('timeout'))
  }

  begin(agent: Agent, { origin, path }: Target, { headers, body }: GuardedPost): void {
    const options = {
      origin,
      path,
      method: 'POST',
      headers: { ...headers, 'accept-encoding': 'identity' },
      body,
    } as const
    try {
      agent.dispatch(options, this)
    } catch (error) {
      this.#end(outboundFailureOf(error))
    }
  }

  breakOff(failure: OutboundFailure): void {
    this.#end(failure)
    this.#controller?.abort(new Error(failure))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    // The attempt ended before there was a connection: send nothing.
    if (this.#isOver) controller.abort(new Error('over'))
  }

  onResponseStart(_controller: Dispatcher.DispatchController, statusCode: number): void {
    if (statusCode >= 200) {
      this.#httpStatus = statusCode
      return
    }
    this.#informational += 1
    if (this.#informational > MAX_INFORMATIONAL) this.breakOff('invalid_response')
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks ??= []
    this.#chunks.push(Buffer.from(chunk))
    this.#size += chunk.length
    if (this.#size >= READ_BYTES) this.breakOff('invalid_response')
  }

  onResponseEnd(): void {
    this.#end(null)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#end(outboundFailureOf(error))
  }

  /** A status line counts as an answer, even if the body is lost; only the deadline applies to the whole answer. */
  #end(failure: OutboundFailure | null): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#cancelDeadline()
    const durationMs = Math.round(performance.now() - this.#startedMs)
    const httpStatus = this.#httpStatus
    if (httpStatus === null) {
      this.#onEnd({ httpStatus, failure: failure ?? 'failed', responseHead: null, durationMs })
    } else {
      const responseHead = this.#chunks ? cleanText(Buffer.concat(this.#chunks), HEAD_BYTES) : ''
      this.#onEnd({ httpStatus, failure: failure === 'timeout' ? failure : null, responseHead, durationMs })
    }
  }
}

/** The first bytes as UTF-8 text, at most `maxBytes` long, without control characters other than line breaks and tabs. */
export function cleanText(bytes: Buffer, maxBytes: number): string {
  const text = new TextDecoder().decode(bytes.subarray(0, maxBytes), { stream: true })
  const clean = text.replace(/[^\P{Cc}\n\t]/gu, '')
  // An invalid byte became three bytes, so the text may be longer than the input.
  return new TextDecoder().decode(Buffer.from(clean).subarray(0, maxBytes), { stream: true })
}
