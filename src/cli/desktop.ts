import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** Opens a page in the browser of whoever sits here; where there is no desktop, as over SSH, nothing happens. */
export async function openOnDesktop(url: string): Promise<void> {
  const { desktopOpener } = await import('#config.ts')
  const program = desktopOpener()
  if (program === null) return
  const opener = spawn(program, [url], { stdio: 'ignore', detached: true })
  opener.unref()
  // Where it cannot be started, the address that was printed is the answer.
  await once(opener, 'spawn').catch(() => undefined)
}
