import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** Opens a page in the desktop's browser. Without a desktop, as over SSH, does nothing. */
export async function openOnDesktop(url: string): Promise<void> {
  const { desktopOpener } = await import('#config/environment.ts')
  const program = desktopOpener()
  if (program === null) return
  const opener = spawn(program, [url], { stdio: 'ignore', detached: true })
  opener.unref()
  // If the opener cannot be started, the printed address has to do.
  await once(opener, 'spawn').catch(() => undefined)
}
