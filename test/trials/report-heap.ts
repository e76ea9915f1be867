import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Loaded into a daemon ahead of its own code: at SIGUSR2 it collects garbage and prints the bytes of heap that are in use then. */
process.on('SIGUSR2', () => {
  collectGarbage()
  process.stdout.write(`${JSON.stringify({ heap: process.memoryUsage().heapUsed })}\n`)
})
