import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

/** The address that a mail server refused permanently, so that no more mails are sent to it. */
export class RefusedAddresses1795200000008 implements Migration {
  readonly work = {
    reminders: ['instant'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
    if (await runner.hasColumn('reminders', 'refused_to')) return
    await runner.query(`ALTER TABLE reminders ADD COLUMN refused_to VARCHAR(254) ${exact} NULL`)
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE reminders DROP COLUMN refused_to')
  }
}
