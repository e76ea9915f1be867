import { parentPort, workerData } from 'node:worker_threads'
import { request } from 'undici'
import { hmacHex } from '#shared/crypto.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { mutatedMail } from './mutated-mail.ts'

/** The parameters of the sending thread. */
export interface SenderTask {
  readonly url: string
  readonly secret: string
  /** The service's current time, in unix seconds. */
  readonly timestamp: number
  readonly mails: number
  readonly seed: number
  readonly connections: number
}

/** Answers by status and decision, such as `200 ignored not_bank_email`. */
export type SenderResult = Readonly<Record<string, number>>

const LARGEST_BODY = 256 * 1024
const task = workerData as SenderTask
const answers: Record<string, number> = {}
let sent = 0

async function sendSome(): Promise<void> {
  while (sent < task.mails) {
    const number = sent
    sent += 1
    const answer = await post(mutatedMail(seededRandom(task.seed + number)))
    answers[answer] = (answers[answer] ?? 0) + 1
  }
}

async function post(raw: Buffer): Promise<string> {
  const body = JSON.stringify({ envelope_to: 'bank+1234567890@pay.example', raw: raw.toString('base64') })
  const timestamp = String(task.timestamp)
  const { statusCode, body: answer } = await request(`${task.url}/api/v1/webhooks/bank-transfer`, {
    method: 'POST',
    headers: { 'x-timestamp': timestamp, 'x-signature': hmacHex(task.secret, `${timestamp}.${body}`) },
    body,
  })
  const decision = (await answer.json()) as { status?: string; reason?: string }
  // As the relay does: a busy machine may exceed the time limit of a mail.
  if (statusCode === 503) return post(raw)
  const isTooLarge = body.length > LARGEST_BODY
  if (isTooLarge !== (statusCode === 400)) throw new Error(`a post of ${body.length} bytes was answered ${statusCode}`)
  return `${statusCode} ${decision.status ?? 'refused'} ${decision.reason ?? ''}`.trim()
}

await Promise.all(Array.from({ length: task.connections }, sendSome))
parentPort?.postMessage(answers satisfies SenderResult)
