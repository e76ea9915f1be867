import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

/** The daemons that run, with the migrations that each knows: what a change of the schema must not break. */
export class Daemons1795200000040 implements Migration {
  readonly phase = 'expand'
  readonly work = {}

  async up(runner: QueryRunner): Promise<void> {
    const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
    await runner.query(`
      CREATE TABLE IF NOT EXISTS daemons (
        id BIGINT NOT NULL AUTO_INCREMENT,
        name VARCHAR(191) NOT NULL,
        version VARCHAR(32) ${exact} NOT NULL,
        migrations TEXT NOT NULL,
        seen_at DATETIME(3) NOT NULL,
        stopped_at DATETIME(3) NULL,
        PRIMARY KEY (id),
        UNIQUE KEY daemons_name (name)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE daemons')
  }
}
