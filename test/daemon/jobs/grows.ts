import { parentPort } from 'node:worker_threads'

parentPort?.postMessage({ type: 'heartbeat' })
const held: number[][] = []
for (;;) held.push(Array.from({ length: 100_000 }, (_, index) => index + held.length))
