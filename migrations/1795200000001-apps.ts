import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

export class Apps1795200000001 implements Migration {
  readonly work = {}

  async up(runner: QueryRunner): Promise<void> {
    const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
    await runner.query(`
      CREATE TABLE IF NOT EXISTS apps (
        id BIGINT NOT NULL AUTO_INCREMENT,
        name VARCHAR(191) NOT NULL,
        api_key VARCHAR(64) ${exact} NOT NULL,
        auth VARCHAR(16) ${exact} NOT NULL,
        is_sandbox TINYINT NOT NULL,
        disabled_at DATETIME(3) NULL,
        api_secret TEXT NULL,
        webhook_url VARCHAR(2048) ${exact} NULL,
        webhook_secret TEXT NULL,
        mail_from VARCHAR(320) NULL,
        identity TEXT NULL,
        realtime_database_url VARCHAR(2048) ${exact} NULL,
        realtime_service_account TEXT NULL,
        realtime_path VARCHAR(768) ${exact} NULL,
        bank_account_id BIGINT NULL,
        clock_offset_ms BIGINT NOT NULL,
        created_at DATETIME(3) NOT NULL,
        updated_at DATETIME(3) NOT NULL,
        PRIMARY KEY (id),
        UNIQUE KEY apps_api_key (api_key)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    await runner.query(`
      CREATE TABLE IF NOT EXISTS payment_methods (
        id BIGINT NOT NULL AUTO_INCREMENT,
        app_id BIGINT NOT NULL,
        method VARCHAR(32) ${exact} NOT NULL,
        is_enabled TINYINT NOT NULL,
        credentials TEXT NULL,
        created_at DATETIME(3) NOT NULL,
        updated_at DATETIME(3) NOT NULL,
        PRIMARY KEY (id),
        UNIQUE KEY payment_methods_app_method (app_id, method)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    await runner.query(`
      CREATE TABLE IF NOT EXISTS bank_accounts (
        id BIGINT NOT NULL AUTO_INCREMENT,
        bank VARCHAR(32) ${exact} NOT NULL,
        bin VARCHAR(6) ${exact} NOT NULL,
        number VARCHAR(19) ${exact} NOT NULL,
        holder VARCHAR(191) NOT NULL,
        forward_code VARCHAR(10) ${exact} NOT NULL,
        disabled_at DATETIME(3) NULL,
        created_at DATETIME(3) NOT NULL,
        PRIMARY KEY (id),
        UNIQUE KEY bank_accounts_forward_code (forward_code)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
  }

  down(): Promise<void> {
    throw new Error('the first tables cannot be removed: restore a backup')
  }
}
