import { hostname } from 'node:os'

/** How this daemon is recorded: `billing-1:4711`, its machine and its process. */
export function daemonName(): string {
  return `${hostname()}:${process.pid}`
}
