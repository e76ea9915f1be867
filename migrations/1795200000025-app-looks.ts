import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

/** The logo of an app's pages, and the name of a one-time purchase there. */
export class AppLooks1795200000025 implements Migration {
  readonly work = {
    transactions: ['instant'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
    await runner.query(`
      CREATE TABLE IF NOT EXISTS app_logos (
        id BIGINT NOT NULL AUTO_INCREMENT,
        app_id BIGINT NOT NULL,
        digest VARCHAR(64) ${exact} NOT NULL,
        type VARCHAR(32) ${exact} NOT NULL,
        content MEDIUMBLOB NOT NULL,
        PRIMARY KEY (id),
        UNIQUE KEY app_logos_app (app_id),
        KEY app_logos_digest (digest)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    if (await runner.hasColumn('transactions', 'plan_name')) return
    await runner.query('ALTER TABLE transactions ADD COLUMN plan_name VARCHAR(191) NULL')
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE transactions DROP COLUMN plan_name')
    await runner.query('DROP TABLE app_logos')
  }
}
