import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

/** A session that cannot be looked up waits separately; an account whose provider does not answer waits as a whole. */
export class LookUpFailures1795200000015 implements Migration {
  readonly work = {
    provider_sessions: ['instant'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
    await runner.query(`
      CREATE TABLE IF NOT EXISTS provider_pauses (
        id BIGINT NOT NULL AUTO_INCREMENT,
        app_id BIGINT NOT NULL,
        provider VARCHAR(32) ${exact} NOT NULL,
        failures INT NOT NULL,
        reason VARCHAR(191) NOT NULL,
        since DATETIME(3) NOT NULL,
        paused_until DATETIME(3) NOT NULL,
        PRIMARY KEY (id),
        UNIQUE KEY provider_pauses_account (app_id, provider)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    if (await runner.hasColumn('provider_sessions', 'failures')) return
    await runner.query('ALTER TABLE provider_sessions ADD COLUMN failures INT NOT NULL DEFAULT 0')
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE provider_sessions DROP COLUMN failures')
    await runner.query('DROP TABLE provider_pauses')
  }
}
