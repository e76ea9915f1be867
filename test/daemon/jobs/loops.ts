import { parentPort } from 'node:worker_threads'

parentPort?.postMessage({ type: 'heartbeat' })
for (let turns = 0; turns >= 0; turns += 1) Math.sqrt(turns)
