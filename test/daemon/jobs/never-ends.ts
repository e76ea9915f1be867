import { parentPort } from 'node:worker_threads'

const startedMs = performance.now()
parentPort?.on('message', () => undefined)
setInterval(() => parentPort?.postMessage({ type: 'heartbeat', sweepMs: performance.now() - startedMs }), 20)
