import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

/** What an operator decided about a flagged transaction. */
export class Resolutions1795200000006 implements Migration {
  readonly work = {
    transactions: ['instant'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
    if (await runner.hasColumn('transactions', 'resolution')) return
    await runner.query(
      `ALTER TABLE transactions ADD COLUMN resolution VARCHAR(16) ${exact} NULL, ADD COLUMN resolved_at DATETIME(3) NULL`,
    )
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE transactions DROP COLUMN resolution, DROP COLUMN resolved_at')
  }
}
