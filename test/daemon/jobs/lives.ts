import { parentPort } from 'node:worker_threads'

const beat = setInterval(() => parentPort?.postMessage({ type: 'heartbeat' }), 20)
parentPort?.on('message', (message) => {
  if (message !== 'cancel') return
  clearInterval(beat)
  parentPort?.postMessage('cancelled')
  process.exit(0)
})
