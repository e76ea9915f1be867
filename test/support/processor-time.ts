/** How long this thread has computed, in milliseconds. The clock says less about work, because other tests run at the same time. */
export function processorMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
