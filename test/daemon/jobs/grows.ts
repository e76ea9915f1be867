import { parentPort } from 'node:worker_threads'

parentPort?.postMessage({ type: 'heartbeat' })
const held: number[][] = []
// In large pieces: near its limit the collector would run again for each small one.
for (;;) held.push(new Array<number>(1_000_000).fill(held.length))
