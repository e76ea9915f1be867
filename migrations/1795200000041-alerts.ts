import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

/** Alerts, the messages about them, the muted kinds, and the periodic work of the job that evaluates them. */
export class Alerts1795200000041 implements Migration {
  readonly phase = 'expand'
  readonly work = {}

  async up(runner: QueryRunner): Promise<void> {
    const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
    await runner.query(`
      CREATE TABLE IF NOT EXISTS alerts (
        id BIGINT NOT NULL AUTO_INCREMENT,
        kind VARCHAR(32) ${exact} NOT NULL,
        subject VARCHAR(191) ${exact} NOT NULL,
        open_key VARCHAR(255) ${exact} NULL,
        text VARCHAR(1000) NOT NULL,
        since DATETIME(3) NOT NULL,
        opened_at DATETIME(3) NOT NULL,
        closed_at DATETIME(3) NULL,
        is_announced TINYINT NOT NULL,
        notified_at DATETIME(3) NULL,
        PRIMARY KEY (id),
        UNIQUE KEY alerts_open_key (open_key),
        KEY alerts_closed (closed_at, id)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    await runner.query(`
      CREATE TABLE IF NOT EXISTS alert_messages (
        id BIGINT NOT NULL AUTO_INCREMENT,
        alert_id BIGINT NULL,
        channel VARCHAR(16) ${exact} NOT NULL,
        type VARCHAR(16) ${exact} NOT NULL,
        kind VARCHAR(32) ${exact} NOT NULL,
        subject VARCHAR(191) ${exact} NOT NULL,
        text TEXT NOT NULL,
        since DATETIME(3) NOT NULL,
        created_at DATETIME(3) NOT NULL,
        attempts INT NOT NULL,
        next_try_at DATETIME(3) NULL,
        sent_at DATETIME(3) NULL,
        last_error VARCHAR(500) NULL,
        PRIMARY KEY (id),
        KEY alert_messages_due (channel, next_try_at, id)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    await runner.query(`
      CREATE TABLE IF NOT EXISTS alert_mutes (
        id BIGINT NOT NULL AUTO_INCREMENT,
        kind VARCHAR(32) ${exact} NOT NULL,
        muted_until DATETIME(3) NOT NULL,
        PRIMARY KEY (id),
        UNIQUE KEY alert_mutes_kind (kind)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    await runner.query(`
      CREATE TABLE IF NOT EXISTS alert_chores (
        id BIGINT NOT NULL AUTO_INCREMENT,
        name VARCHAR(32) ${exact} NOT NULL,
        begun_at DATETIME(3) NOT NULL,
        result TEXT NULL,
        PRIMARY KEY (id),
        UNIQUE KEY alert_chores_name (name)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of ['alert_chores', 'alert_mutes', 'alert_messages', 'alerts'])
      await runner.query(`DROP TABLE ${table}`)
  }
}
