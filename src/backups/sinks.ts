import { spawn } from 'node:child_process'
import { createWriteStream, existsSync } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Writable } from 'node:stream'
import { childEnvironment } from '#config/environment.ts'
import { randomHex } from '#shared/crypto.ts'
import { AppError } from '#shared/errors.ts'

/** Where bytes go. Ends with `finish`, which returns the file that holds them, or with `abandon`, which returns the error to throw. */
export interface Sink<File = string | null> {
  readonly stream: Writable
  readonly finish: () => Promise<File>
  readonly abandon: (error: unknown) => Promise<unknown>
}

/** The prefix of files that are being written. What a killed program left is removed a day later. */
export const DRAFT = '.paygate-draft-'

/** A file that only its owner can read. It either exists, complete and on disk, or does not exist at all; an older one is never replaced. */
export async function fileSink(path: string): Promise<Sink<string>> {
  if (existsSync(path)) throw new AppError('invalid_request', `${path} exists: name another file, or remove it`)
  const folder = dirname(path)
  await mkdir(folder, { recursive: true, mode: 0o755 })
  const draft = join(folder, `${DRAFT}${randomHex(8)}`)
  return {
    stream: createWriteStream(draft, { flags: 'wx', mode: 0o600, flush: true }),
    async finish() {
      await rename(draft, path)
      await syncFolder(folder)
      return path
    },
    async abandon(error) {
      await rm(draft, { force: true })
      return isFullDisk(error)
        ? new AppError('invalid_request', `the disk of ${folder} is full: make room there, or give --to another place`)
        : error
    },
  }
}

function isFullDisk(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOSPC' || code === 'EDQUOT'
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** A command of the shell, which reads the bytes; it must succeed. It gets none of our settings, which hold secrets. */
export function commandSink(command: string): Sink<null> {
  const inherited = Object.entries(childEnvironment({})).filter(
    ([name]) => !/^(BILLING_|CREDENTIALS_DIRECTORY$)/.test(name),
  )
  const child = spawn('/bin/sh', ['-c', command], {
    stdio: ['pipe', process.stderr, process.stderr],
    env: Object.fromEntries(inherited),
  })
  const ended = new Promise<void>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      if (code === 0) resolve()
      else reject(pipeFailed(`it ended with ${signal ?? code}`))
    })
  })
  ended.catch(() => undefined)
  return {
    stream: child.stdin,
    async finish() {
      await ended
      return null
    },
    async abandon(error) {
      child.kill()
      if (!isBrokenPipe(error)) return error
      await ended
      return pipeFailed('it ended before it had read everything')
    },
  }
}

function pipeFailed(why: string): AppError {
  return new AppError('provider_error', `the command of --pipe failed: ${why}`)
}

/** Whether the reader ended; any other error comes from the data to be written. */
function isBrokenPipe(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'EPIPE' || code === 'ERR_STREAM_PREMATURE_CLOSE'
}
