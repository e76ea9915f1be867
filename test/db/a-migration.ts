import type { QueryRunner } from 'typeorm'
import type { Migration, Phase, TableWork } from '#migrations/migration.ts'

/** A migration of a test: runs `up`, and declares `work` and, unless it is like the first ones, `phase`. */
export function aMigration(
  name: string,
  up: (runner: QueryRunner) => Promise<void> = (runner) => runner.query('DO 1') as Promise<void>,
  work: Readonly<Record<string, readonly TableWork[]>> = {},
  phase?: Phase,
): new () => Migration {
  const made = class implements Migration {
    work = work
    phase = phase
    up = up
    down = (): Promise<void> => Promise.reject(new Error('not reversible'))
  }
  Object.defineProperty(made, 'name', { value: name })
  return made
}
