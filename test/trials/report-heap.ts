import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Preloaded into a daemon: on SIGUSR2 it collects garbage and prints the bytes of heap in use. */
process.on('SIGUSR2', () => {
  collectGarbage()
  process.stdout.write(`${JSON.stringify({ heap: process.memoryUsage().heapUsed })}\n`)
})
