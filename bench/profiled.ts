import { join } from 'node:path'

/** Where profiles are written; null if none is asked. */
let folder: string | null = null

export function profileInto(path: string): void {
  folder = path
}

/** What a process of ours is started with: with `--profile` it writes a CPU profile when it ends. */
export function profiled(name: string): Record<string, string> {
  if (folder === null) return {}
  return { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${join(folder, name)}` }
}
