import { parentPort } from 'node:worker_threads'

parentPort?.postMessage({ type: 'heartbeat' })
for (let rounds = 0; rounds >= 0; rounds += 1) Math.sqrt(rounds)
