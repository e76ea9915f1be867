import { createReadStream } from 'node:fs'
import { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import type { Target } from '#db/connect.ts'
import type { Family } from '#embedded/setup.ts'
import { AppError, messageOf } from '#shared/errors.ts'
import type { StoredBackup } from './backup-folder.ts'
import { startClient } from './client-program.ts'
import { decrypted } from './encryption.ts'
import { MANIFEST_BYTES, manifestIn, type Manifest } from './manifest.ts'

/** A backup that was changed or truncated, or that was encrypted to another key. */
export class UnreadableBackup extends AppError {
  readonly isDamaged: boolean

  constructor(file: string, reason: string, options: ErrorOptions = {}) {
    const isOfAnother = reason.startsWith('no identity matched')
    const words = isOfAnother ? 'was encrypted to another key than the given one' : `is damaged: ${reason}`
    super('invalid_request', `${file} ${words}`, options)
    this.isDamaged = !isOfAnother
  }
}

/** A backup, and private keys, one of which opens it. `onRead` is called with the number of bytes that were read so far. */
export interface ReadableBackup {
  readonly file: string
  readonly identities: readonly string[]
  readonly onRead: (bytes: number) => void
}

export interface ReadOptions {
  readonly identities: readonly string[]
  /** Called with a description of each step. */
  readonly onStep: (step: string) => void
}

/** How to read a stored backup, with `restoring 42 %` as its steps. */
export function readableBackup(
  { file, bytes }: StoredBackup,
  verb: 'reading' | 'restoring',
  { identities, onStep }: ReadOptions,
): ReadableBackup {
  return { file, identities, onRead: (read) => onStep(`${verb} ${Math.floor((read / bytes) * 100)} %`) }
}

/** Reads the whole backup without using it. Throws `UnreadableBackup`. */
export async function readManifest(backup: ReadableBackup): Promise<Manifest> {
  return readInto(backup, new Writable({ write: (_chunk, _encoding, done) => done() }))
}

/**
 * Loads the backup into a database. Throws `UnreadableBackup`, or the error of the database's program; part of the backup may be loaded
 * then.
 */
export async function load(backup: ReadableBackup, family: Family, target: Target): Promise<Manifest> {
  const { child, ended } = startClient(family, target)
  if (!child.stdin) throw new Error('the program of the database has no input')
  try {
    const manifest = await readInto(backup, child.stdin)
    await ended
    return manifest
  } catch (error) {
    if (error instanceof UnreadableBackup) {
      child.kill()
      throw error
    }
    // A program that ends early reports why; the pipe only breaks.
    await ended
    throw error
  }
}

async function readInto({ file, identities, onRead }: ReadableBackup, out: Writable): Promise<Manifest> {
  const end = new Tail(MANIFEST_BYTES)
  await pipeline(
    () => unreadable(file, plainOf(file, identities, onRead)),
    async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        end.push(chunk)
        yield chunk
      }
    },
    out,
  )
  const manifest = manifestIn(end.bytes)
  if (!manifest) throw new UnreadableBackup(file, 'it has no manifest at its end')
  return manifest
}

async function* plainOf(
  file: string,
  identities: readonly string[],
  onRead: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  const read = async function* (): AsyncGenerator<Buffer> {
    let bytes = 0
    for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
      bytes += chunk.length
      onRead(bytes)
      yield chunk
    }
  }
  const unzip = createGunzip()
  const unzipping = pipeline(() => decrypted(read(), identities), unzip)
  unzipping.catch(() => undefined)
  yield* unzip as AsyncIterable<Buffer>
  await unzipping
}

/** Names the file in every error that occurs while it is read. */
async function* unreadable(file: string, chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const source = chunks[Symbol.asyncIterator]()
  for (;;) {
    const next = await source.next().catch((error: unknown) => {
      throw new UnreadableBackup(file, messageOf(error), { cause: error })
    })
    if (next.done === true) return
    yield next.value
  }
}

/** The last bytes of a stream. */
class Tail {
  readonly #limit: number
  #chunks: Buffer[] = []
  #length = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#length += chunk.length
    while (this.#chunks[0] && this.#length - this.#chunks[0].length >= this.#limit)
      this.#length -= this.#chunks.shift()?.length ?? 0
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#chunks)
  }
}
