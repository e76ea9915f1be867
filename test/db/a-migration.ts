import type { QueryRunner } from 'typeorm'
import type { Migration, TableWork } from '#migrations/migration.ts'

/** A migration of a test: runs `up`, and declares `work`. */
export function aMigration(
  name: string,
  up: (runner: QueryRunner) => Promise<void> = (runner) => runner.query('DO 1') as Promise<void>,
  work: Readonly<Record<string, readonly TableWork[]>> = {},
): new () => Migration {
  const made = class implements Migration {
    work = work
    up = up
    down = (): Promise<void> => Promise.reject(new Error('not reversible'))
  }
  Object.defineProperty(made, 'name', { value: name })
  return made
}
