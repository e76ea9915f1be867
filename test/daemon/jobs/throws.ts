import { parentPort } from 'node:worker_threads'

parentPort?.postMessage({ type: 'heartbeat', sweepMs: null })
throw new Error('the job broke')
