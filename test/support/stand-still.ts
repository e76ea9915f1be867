/** Stops this thread for `ms` milliseconds, as on a machine that is paused or swaps: just before its event loop runs timers that are due. */
export async function standStill(ms: number): Promise<void> {
  await new Promise(setImmediate)
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
