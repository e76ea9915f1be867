import { parentPort } from 'node:worker_threads'

parentPort?.on('message', () => undefined)
setInterval(() => parentPort?.postMessage({ type: 'heartbeat' }), 20)
