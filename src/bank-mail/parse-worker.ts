import { parentPort, workerData } from 'node:worker_threads'
import { readMail, type MailReading } from './read-mail.ts'
import type { TrustSettings } from './trust.ts'

/** A mail to read, as the daemon's main thread posts it. */
export interface ReadingTask {
  readonly id: number
  readonly raw: Uint8Array
}

/** The answer; `reading` is null if a parser threw. The worker posts `'ready'` before the first answer. */
export interface ReadingAnswer {
  readonly id: number
  readonly reading: MailReading | null
}

const port = parentPort
if (!port) throw new Error('parse-worker.ts runs in a worker thread')
const settings = workerData as TrustSettings

port.on('message', (task: ReadingTask) => {
  void read(task).then((reading) => port.postMessage({ id: task.id, reading } satisfies ReadingAnswer))
})
port.postMessage('ready')

async function read(task: ReadingTask): Promise<MailReading | null> {
  try {
    return await readMail(Buffer.from(task.raw), settings)
  } catch {
    return null
  }
}
