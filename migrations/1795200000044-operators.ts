import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

/** Operators with keys of their own, and refunds that wait for a second operator. */
export class Operators1795200000044 implements Migration {
  readonly phase = 'expand'
  readonly work = {}

  async up(runner: QueryRunner): Promise<void> {
    const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
    await runner.query(`
      CREATE TABLE IF NOT EXISTS operators (
        id BIGINT NOT NULL AUTO_INCREMENT,
        name VARCHAR(32) ${exact} NOT NULL,
        role VARCHAR(16) ${exact} NOT NULL,
        created_at DATETIME(3) NOT NULL,
        PRIMARY KEY (id),
        UNIQUE KEY operators_name (name)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    await runner.query(`
      CREATE TABLE IF NOT EXISTS approvals (
        id BIGINT NOT NULL AUTO_INCREMENT,
        status VARCHAR(16) ${exact} NOT NULL,
        open_key VARCHAR(64) ${exact} NULL,
        requested_by VARCHAR(191) NOT NULL,
        requested_at DATETIME(3) NOT NULL,
        command VARCHAR(1000) NOT NULL,
        terms TEXT NOT NULL,
        seen TEXT NOT NULL,
        effects TEXT NOT NULL,
        app_id BIGINT NULL,
        transaction_id BIGINT NULL,
        payment_id BIGINT NULL,
        amount BIGINT NOT NULL,
        currency VARCHAR(3) ${exact} NOT NULL,
        decided_by VARCHAR(191) NULL,
        decided_at DATETIME(3) NULL,
        note VARCHAR(500) NULL,
        PRIMARY KEY (id),
        UNIQUE KEY approvals_open_key (open_key),
        KEY approvals_status (status, id)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE approvals')
    await runner.query('DROP TABLE operators')
  }
}
