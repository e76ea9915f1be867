import type { QueryRunner } from 'typeorm'
import type { Migration } from './migration.ts'

/** The seller's data of a transaction, as JSON; null if there is none. */
export class Metadata1795200000034 implements Migration {
  readonly work = {
    transactions: ['instant'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    if (await runner.hasColumn('transactions', 'metadata')) return
    await runner.query('ALTER TABLE transactions ADD COLUMN metadata TEXT NULL')
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE transactions DROP COLUMN metadata')
  }
}
