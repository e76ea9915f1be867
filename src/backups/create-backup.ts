import { createHash } from 'node:crypto'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type { Context } from '#context.ts'
import { AppError } from '#shared/errors.ts'
import { startDump } from './client-program.ts'
import { encrypted } from './encryption.ts'
import type { Label } from './label.ts'
import { manifestLine, type Manifest } from './manifest.ts'
import { DumpScan } from './scan-dump.ts'
import type { Sink } from './sinks.ts'
import { readFamily, readMoneyColumns, readSchema, readTables } from './store.ts'

/** A backup that was made. `file` is null if it went to a program. */
export interface CreatedBackup {
  readonly file: string | null
  readonly bytes: number
  readonly sha256: string
  readonly manifest: Manifest
}

/** `table` is being read. `rows` and `expected` are over all tables; `expected` is the server's estimate. */
export type Progress = (table: string, rows: number, expected: number) => void

export interface CreateOptions {
  readonly recipient: string
  readonly openSink: (label: Label) => Sink | Promise<Sink>
  readonly onProgress: Progress
}

type Source = Pick<Context, 'db' | 'clock'>

/**
 * Writes the whole database as it is at one instant, compressed and encrypted, while the service runs. Works with every version of the
 * schema. If anything fails, nothing is left behind.
 */
export async function createBackup(
  source: Source,
  { recipient, openSink, onProgress }: CreateOptions,
): Promise<CreatedBackup> {
  const { label, server, tables, scan } = await inspect(source)
  const manifest = (): Manifest => ({
    taken_at: label.takenAt.toISOString(),
    schema: label.schema,
    server,
    keys: scan.keys,
    ...scan.contents,
  })
  const expected = [...tables.values()].reduce((sum, estimate) => sum + estimate, 0)
  const report = (): void => onProgress(scan.table ?? '', scan.total, expected)
  const written = new WrittenBytes()
  const sink = await openSink(label)
  try {
    await pipeline(
      () => dumped(source, label, scan, report, manifest),
      createGzip(),
      (plain: AsyncIterable<Uint8Array>) => encrypted(plain, recipient, label),
      (bytes: AsyncIterable<Uint8Array>) => written.pass(bytes),
      sink.stream,
    )
    return { file: await sink.finish(), bytes: written.count, sha256: written.sha256(), manifest: manifest() }
  } catch (error) {
    throw await sink.abandon(error)
  }
}

async function inspect({ db, clock }: Source) {
  const { family, version: server } = await readFamily(db)
  const tables = await readTables(db)
  const schema = await readSchema(db)
  if (schema === null)
    throw new AppError('invalid_request', 'the database has no tables of Paygate: there is nothing to back up')
  const scan = new DumpScan(tables.keys(), await readMoneyColumns(db))
  return { label: { takenAt: clock.now(), schema, family } satisfies Label, server, tables, scan }
}

/** The dump as the database's own program writes it, followed by the manifest. Throws unless it is complete. */
async function* dumped(
  { db }: Source,
  { family }: Label,
  scan: DumpScan,
  report: () => void,
  manifest: () => Manifest,
): AsyncGenerator<Uint8Array> {
  const [target] = db.targets
  if (!target) throw new Error('no database is configured')
  const { child, ended } = startDump(family, target)
  try {
    for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
      scan.read(chunk)
      report()
      yield chunk
    }
    await ended
  } finally {
    child.kill()
  }
  if (!scan.isComplete) throw new Error('the dump ended early')
  yield Buffer.from(manifestLine(manifest()))
}

/** Counts and hashes the bytes that pass. */
class WrittenBytes {
  count = 0
  readonly #hash = createHash('sha256')

  async *pass(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of bytes) {
      this.count += chunk.length
      this.#hash.update(chunk)
      yield chunk
    }
  }

  /** In hex. Call it once, after the last byte. */
  sha256(): string {
    return this.#hash.digest('hex')
  }
}
