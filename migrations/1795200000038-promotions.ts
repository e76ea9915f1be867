import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

/** Promotions, who uses them, and the promotion that continues with the renewals of a subscription. */
export class Promotions1795200000038 implements Migration {
  readonly phase = 'expand'
  readonly work = {
    subscriptions: ['instant'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
    await runner.query(`
      CREATE TABLE IF NOT EXISTS promotions (
        id BIGINT NOT NULL AUTO_INCREMENT,
        app_id BIGINT NOT NULL,
        code VARCHAR(40) ${exact} NOT NULL,
        percent INT NULL,
        amount BIGINT NULL,
        currency VARCHAR(3) ${exact} NULL,
        plan_codes TEXT NULL,
        every_period TINYINT NOT NULL,
        valid_until DATETIME(3) NULL,
        max_uses BIGINT NULL,
        once_per_user TINYINT NOT NULL,
        on_page TINYINT NOT NULL,
        status VARCHAR(16) ${exact} NOT NULL,
        version BIGINT NOT NULL,
        created_at DATETIME(3) NOT NULL,
        updated_at DATETIME(3) NOT NULL,
        PRIMARY KEY (id),
        UNIQUE KEY promotions_app_code (app_id, code),
        KEY promotions_app_created (app_id, created_at, id)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    await runner.query(`
      CREATE TABLE IF NOT EXISTS promotion_uses (
        id BIGINT NOT NULL AUTO_INCREMENT,
        app_id BIGINT NOT NULL,
        promotion_id BIGINT NOT NULL,
        end_user_id BIGINT NOT NULL,
        once_for BIGINT NULL,
        transaction_id BIGINT NULL,
        status VARCHAR(16) ${exact} NOT NULL,
        reserved_until DATETIME(3) NOT NULL,
        created_at DATETIME(3) NOT NULL,
        PRIMARY KEY (id),
        UNIQUE KEY promotion_uses_once (promotion_id, once_for),
        UNIQUE KEY promotion_uses_transaction (transaction_id),
        KEY promotion_uses_standing (promotion_id, status, reserved_until),
        KEY promotion_uses_end_user (promotion_id, end_user_id, status),
        KEY promotion_uses_app (app_id)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    if (await runner.hasColumn('subscriptions', 'promotion_code')) return
    await runner.query(`ALTER TABLE subscriptions ADD COLUMN promotion_code VARCHAR(40) ${exact} NULL`)
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE subscriptions DROP COLUMN promotion_code')
    await runner.query('DROP TABLE promotion_uses')
    await runner.query('DROP TABLE promotions')
  }
}
