import { readFileSync } from 'node:fs'
import { messageOf } from '#shared/errors.ts'
import { printable } from './printable.ts'
import { UsageError } from './usage-error.ts'

/** The text of a file, without a byte order mark; `-` is standard input. */
export function readTextFile(path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path === '-' ? 0 : path))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new UsageError(
      code === 'ERR_ENCODING_INVALID_ENCODED_DATA'
        ? `${nameOf(path)} is not UTF-8 text`
        : `${nameOf(path)} cannot be read: ${code ?? 'no such file'}`,
    )
  }
}

/** The bytes of a file. */
export function readBytes(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new UsageError(`${path} cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'no such file'}`)
  }
}

/** The JSON value in a file; `-` is standard input. */
export function readJsonFile(path: string): unknown {
  const text = readTextFile(path)
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    throw new UsageError(`${nameOf(path)} is not JSON: ${printable(messageOf(error))}`)
  }
}

function nameOf(path: string): string {
  return path === '-' ? 'standard input' : path
}
