import { parentPort } from 'node:worker_threads'

parentPort?.postMessage({ type: 'heartbeat' })
const cell = new Int32Array(new SharedArrayBuffer(4))
// Waits in between, because a full core would starve the threads beside it.
for (;;) Atomics.wait(cell, 0, 0, 10)
