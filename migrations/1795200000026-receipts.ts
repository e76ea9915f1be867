import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

/** Mails about money that arrived or was refunded: each is a row that is written with the change that it reports. */
export class Receipts1795200000026 implements Migration {
  readonly work = {}

  async up(runner: QueryRunner): Promise<void> {
    const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
    await runner.query(`
      CREATE TABLE IF NOT EXISTS receipts (
        id BIGINT NOT NULL AUTO_INCREMENT,
        app_id BIGINT NOT NULL,
        transaction_id BIGINT NOT NULL,
        kind VARCHAR(16) ${exact} NOT NULL,
        amount BIGINT NOT NULL,
        total BIGINT NOT NULL,
        status VARCHAR(16) ${exact} NOT NULL,
        failures INT NOT NULL,
        next_try_at DATETIME(3) NOT NULL,
        last_error VARCHAR(500) NULL,
        created_at DATETIME(3) NOT NULL,
        sent_at DATETIME(3) NULL,
        PRIMARY KEY (id),
        UNIQUE KEY receipts_transaction_kind_total (transaction_id, kind, total),
        KEY receipts_due (status, next_try_at)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE receipts')
  }
}
