import { readFileSync } from 'node:fs'
import { UsageError } from './usage-error.ts'

/** The text of a file; `-` is standard input. */
export function readTextFile(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8')
  } catch (error) {
    throw new UsageError(`${path} cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'no such file'}`)
  }
}

/** The JSON value in a file; `-` is standard input. */
export function readJsonFile(path: string): unknown {
  try {
    return JSON.parse(readTextFile(path)) as unknown
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new UsageError(`${path} is not JSON`)
  }
}
