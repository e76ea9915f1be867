import { parentPort } from 'node:worker_threads'
import type { ReadingTask } from '#providers/bank-mail/parse-worker.ts'

/** A worker that does what mails make parsers do: it never ends, eats memory, dies; or answers. */
const port = parentPort!
port.on('message', ({ id, raw }: ReadingTask) => {
  switch (Buffer.from(raw).toString()) {
    case 'loop':
      for (;;);
    case 'eat':
      for (const eaten: string[] = []; ;) eaten.push(`${'x'.repeat(1000)}${eaten.length}`)
    case 'throw':
      throw new Error('thrown in the worker')
    case 'exit':
      process.exit(0)
  }
  port.postMessage({ id, reading: { bank: 'ACB' } })
})
port.postMessage('ready')
