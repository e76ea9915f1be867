import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

/** How many reminder mails each app has sent in each day, and the day on which each mail counts. */
export class DailyMails1795200000016 implements Migration {
  readonly work = {
    reminders: ['instant'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
    await runner.query(`
      CREATE TABLE IF NOT EXISTS daily_mails (
        id BIGINT NOT NULL AUTO_INCREMENT,
        app_id BIGINT NOT NULL,
        day VARCHAR(10) ${exact} NOT NULL,
        mails INT NOT NULL,
        PRIMARY KEY (id),
        UNIQUE KEY daily_mails_app_day (app_id, day),
        KEY daily_mails_day (day)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    if (await runner.hasColumn('reminders', 'counted_on')) return
    await runner.query(`ALTER TABLE reminders ADD COLUMN counted_on VARCHAR(10) ${exact} NULL`)
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE IF EXISTS daily_mails')
    await runner.query('ALTER TABLE reminders DROP COLUMN counted_on')
  }
}
