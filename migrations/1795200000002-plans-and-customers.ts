import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

export class PlansAndCustomers1795200000002 implements Migration {
  readonly work = {}

  async up(runner: QueryRunner): Promise<void> {
    const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
    await runner.query(`
      CREATE TABLE IF NOT EXISTS plans (
        id BIGINT NOT NULL AUTO_INCREMENT,
        app_id BIGINT NOT NULL,
        code VARCHAR(64) ${exact} NOT NULL,
        name VARCHAR(191) NOT NULL,
        description TEXT NULL,
        status VARCHAR(16) ${exact} NOT NULL,
        created_at DATETIME(3) NOT NULL,
        updated_at DATETIME(3) NOT NULL,
        PRIMARY KEY (id),
        UNIQUE KEY plans_app_code (app_id, code)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    await runner.query(`
      CREATE TABLE IF NOT EXISTS prices (
        id BIGINT NOT NULL AUTO_INCREMENT,
        plan_id BIGINT NOT NULL,
        name VARCHAR(191) NULL,
        amount BIGINT NOT NULL,
        currency CHAR(3) ${exact} NOT NULL,
        interval_unit VARCHAR(16) ${exact} NOT NULL,
        interval_count INT NOT NULL,
        trial_amount BIGINT NULL,
        trial_interval_unit VARCHAR(16) ${exact} NULL,
        trial_interval_count INT NULL,
        status VARCHAR(16) ${exact} NOT NULL,
        created_at DATETIME(3) NOT NULL,
        PRIMARY KEY (id),
        KEY prices_plan (plan_id)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    await runner.query(`
      CREATE TABLE IF NOT EXISTS customers (
        id BIGINT NOT NULL AUTO_INCREMENT,
        app_id BIGINT NOT NULL,
        name VARCHAR(191) NOT NULL,
        email VARCHAR(254) ${exact} NOT NULL,
        merchant_customer_id VARCHAR(191) ${exact} NULL,
        cc_emails TEXT NOT NULL,
        bcc_emails TEXT NOT NULL,
        locale VARCHAR(8) ${exact} NOT NULL,
        created_at DATETIME(3) NOT NULL,
        updated_at DATETIME(3) NOT NULL,
        PRIMARY KEY (id),
        KEY customers_app_created (app_id, created_at, id),
        KEY customers_app_merchant (app_id, merchant_customer_id),
        KEY customers_app_email (app_id, email)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
  }

  down(): Promise<void> {
    throw new Error('the first tables cannot be removed: restore a backup')
  }
}
