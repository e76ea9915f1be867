import { parentPort } from 'node:worker_threads'
import type { ReadingTask } from '#bank-mail/parse-worker.ts'

/** A worker that does what mails make parsers do: it never ends, eats memory, dies, waits; or answers. */
const port = parentPort!
port.on('message', ({ id, raw }: ReadingTask) => {
  const text = Buffer.from(raw).toString()
  switch (text.split(/\r?\n/).at(-1) ?? '') {
    case 'loop':
      for (;;);
    case 'eat':
      for (const eaten: string[] = []; ;) eaten.push(`${'x'.repeat(1000)}${eaten.length}`)
    case 'throw':
      throw new Error('thrown in the worker')
    case 'exit':
      process.exit(0)
    case 'give up':
      port.postMessage({ id, reading: null })
      return
    case 'never answer':
      return
    case 'use no CPU time for a while':
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400)
      break
    case 'stand still':
      standStill(raw)
  }
  port.postMessage({ id, reading: { bank: 'ACB' } })
  if (raw.buffer instanceof SharedArrayBuffer) announceAnswer(raw)
})
port.postMessage('ready')

/** Until the main thread goes on; some of its own work is left then. */
function standStill({ buffer, byteOffset }: Uint8Array): void {
  const shared = new Int32Array(buffer, byteOffset)
  Atomics.wait(shared, 0, 0)
  Atomics.wait(shared, 0, 1, 20)
}

/** Wakes the thread that waits for the answer to lie there. */
function announceAnswer({ buffer, byteOffset }: Uint8Array): void {
  const shared = new Int32Array(buffer, byteOffset)
  Atomics.store(shared, 1, 1)
  Atomics.notify(shared, 1)
}
