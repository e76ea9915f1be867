import { parentPort } from 'node:worker_threads'

parentPort?.postMessage({ type: 'heartbeat' })
throw new Error('the job broke')
