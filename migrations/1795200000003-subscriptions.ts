import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

export class Subscriptions1795200000003 implements Migration {
  readonly work = {}

  async up(runner: QueryRunner): Promise<void> {
    const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
    // The row that serves as the lock: one per end user of an app, older than any subscription.
    await runner.query(`
      CREATE TABLE IF NOT EXISTS end_users (
        id BIGINT NOT NULL AUTO_INCREMENT,
        app_id BIGINT NOT NULL,
        external_ref VARCHAR(191) ${exact} NOT NULL,
        version BIGINT NOT NULL,
        created_at DATETIME(3) NOT NULL,
        PRIMARY KEY (id),
        UNIQUE KEY end_users_app_ref (app_id, external_ref)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    await runner.query(`
      CREATE TABLE IF NOT EXISTS subscriptions (
        id BIGINT NOT NULL AUTO_INCREMENT,
        app_id BIGINT NOT NULL,
        end_user_id BIGINT NOT NULL,
        external_ref VARCHAR(191) ${exact} NOT NULL,
        plan_id BIGINT NOT NULL,
        price_id BIGINT NOT NULL,
        customer_id BIGINT NULL,
        status VARCHAR(16) ${exact} NOT NULL,
        period_start DATETIME(3) NOT NULL,
        current_period_end DATETIME(3) NULL,
        anchor_day TINYINT NULL,
        in_trial TINYINT NOT NULL,
        revision BIGINT NOT NULL,
        renewal_token VARCHAR(64) ${exact} NOT NULL,
        reminders_stopped_at DATETIME(3) NULL,
        created_at DATETIME(3) NOT NULL,
        updated_at DATETIME(3) NOT NULL,
        PRIMARY KEY (id),
        UNIQUE KEY subscriptions_end_user (end_user_id),
        UNIQUE KEY subscriptions_renewal_token (renewal_token),
        KEY subscriptions_app_end (app_id, current_period_end, id),
        KEY subscriptions_status_end (status, current_period_end, id),
        KEY subscriptions_app_created (app_id, created_at, id)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    await runner.query(`
      CREATE TABLE IF NOT EXISTS trial_grants (
        id BIGINT NOT NULL AUTO_INCREMENT,
        app_id BIGINT NOT NULL,
        end_user_id BIGINT NOT NULL,
        plan_id BIGINT NOT NULL,
        transaction_id BIGINT NULL,
        granted_at DATETIME(3) NOT NULL,
        PRIMARY KEY (id),
        UNIQUE KEY trial_grants_end_user_plan (end_user_id, plan_id)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    // The ledger of periods: the only reason why a period end may move.
    await runner.query(`
      CREATE TABLE IF NOT EXISTS payment_applications (
        id BIGINT NOT NULL AUTO_INCREMENT,
        app_id BIGINT NOT NULL,
        subscription_id BIGINT NOT NULL,
        revision BIGINT NOT NULL,
        transaction_id BIGINT NULL,
        kind VARCHAR(16) ${exact} NOT NULL,
        plan_id BIGINT NOT NULL,
        price_id BIGINT NOT NULL,
        interval_unit VARCHAR(16) ${exact} NOT NULL,
        interval_count INT NOT NULL,
        is_trial TINYINT NOT NULL,
        end_before DATETIME(3) NULL,
        anchor_before TINYINT NULL,
        period_start DATETIME(3) NOT NULL,
        end_after DATETIME(3) NULL,
        anchor_after TINYINT NULL,
        applied_at DATETIME(3) NOT NULL,
        PRIMARY KEY (id),
        UNIQUE KEY payment_applications_transaction (transaction_id),
        UNIQUE KEY payment_applications_revision (subscription_id, revision)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    await runner.query(`
      CREATE TABLE IF NOT EXISTS reminders (
        id BIGINT NOT NULL AUTO_INCREMENT,
        app_id BIGINT NOT NULL,
        subscription_id BIGINT NOT NULL,
        period_end DATETIME(3) NOT NULL,
        stage TINYINT NOT NULL,
        status VARCHAR(16) ${exact} NOT NULL,
        claimed_at DATETIME(3) NOT NULL,
        handed_over_at DATETIME(3) NULL,
        sent_at DATETIME(3) NULL,
        last_error VARCHAR(500) NULL,
        PRIMARY KEY (id),
        UNIQUE KEY reminders_subscription_end_stage (subscription_id, period_end, stage),
        KEY reminders_status (status, claimed_at)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    await runner.query(`
      CREATE TABLE IF NOT EXISTS realtime_writes (
        subscription_id BIGINT NOT NULL,
        app_id BIGINT NOT NULL,
        state VARCHAR(16) ${exact} NOT NULL,
        wanted_at DATETIME(3) NOT NULL,
        wanted_revision BIGINT NOT NULL,
        lease_token VARCHAR(64) ${exact} NULL,
        lease_until DATETIME(3) NULL,
        attempts INT NOT NULL,
        last_error VARCHAR(500) NULL,
        written_at DATETIME(3) NULL,
        PRIMARY KEY (subscription_id),
        KEY realtime_writes_state (state, wanted_at),
        KEY realtime_writes_app (app_id, state)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
  }

  down(): Promise<void> {
    throw new Error('the first tables cannot be removed: restore a backup')
  }
}
