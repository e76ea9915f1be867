import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

export class Payments1795200000004 implements Migration {
  readonly work = {}

  async up(runner: QueryRunner): Promise<void> {
    const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
    await runner.query(`
      CREATE TABLE IF NOT EXISTS transactions (
        id BIGINT NOT NULL AUTO_INCREMENT,
        app_id BIGINT NOT NULL,
        end_user_id BIGINT NOT NULL,
        external_ref VARCHAR(191) ${exact} NOT NULL,
        mode VARCHAR(16) ${exact} NOT NULL,
        plan_ref VARCHAR(64) ${exact} NOT NULL,
        plan_id BIGINT NULL,
        price_id BIGINT NULL,
        customer_id BIGINT NULL,
        is_trial TINYINT NOT NULL,
        amount BIGINT NOT NULL,
        amount_received BIGINT NOT NULL,
        currency CHAR(3) ${exact} NOT NULL,
        status VARCHAR(16) ${exact} NOT NULL,
        provider_code VARCHAR(32) ${exact} NULL,
        flag_reason VARCHAR(32) ${exact} NULL,
        flagged_at DATETIME(3) NULL,
        renews_end DATETIME(3) NULL,
        transfer_code VARCHAR(12) ${exact} NULL,
        bank_page_opened_at DATETIME(3) NULL,
        created_at DATETIME(3) NOT NULL,
        completed_at DATETIME(3) NULL,
        updated_at DATETIME(3) NOT NULL,
        PRIMARY KEY (id),
        UNIQUE KEY transactions_transfer_code (transfer_code),
        KEY transactions_app_created (app_id, created_at, id),
        KEY transactions_app_ref (app_id, external_ref, created_at, id),
        KEY transactions_flagged (flag_reason, app_id, created_at, id)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    await runner.query(`
      CREATE TABLE IF NOT EXISTS payments (
        id BIGINT NOT NULL AUTO_INCREMENT,
        app_id BIGINT NOT NULL,
        transaction_id BIGINT NOT NULL,
        provider VARCHAR(32) ${exact} NOT NULL,
        reference VARCHAR(191) ${exact} NOT NULL,
        amount BIGINT NOT NULL,
        currency CHAR(3) ${exact} NOT NULL,
        paid_at DATETIME(3) NOT NULL,
        received_at DATETIME(3) NOT NULL,
        refunded_at DATETIME(3) NULL,
        refund_reference VARCHAR(191) ${exact} NULL,
        PRIMARY KEY (id),
        UNIQUE KEY payments_provider_reference (provider, reference),
        KEY payments_transaction (transaction_id)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    await runner.query(`
      CREATE TABLE IF NOT EXISTS checkout_sessions (
        id BIGINT NOT NULL AUTO_INCREMENT,
        app_id BIGINT NOT NULL,
        end_user_id BIGINT NOT NULL,
        token VARCHAR(64) ${exact} NOT NULL,
        origin VARCHAR(16) ${exact} NOT NULL,
        subscription_id BIGINT NULL,
        transaction_id BIGINT NULL,
        customer_id BIGINT NULL,
        payment_method VARCHAR(32) ${exact} NULL,
        success_url VARCHAR(2048) ${exact} NOT NULL,
        cancel_url VARCHAR(2048) ${exact} NOT NULL,
        expires_at DATETIME(3) NOT NULL,
        created_at DATETIME(3) NOT NULL,
        PRIMARY KEY (id),
        UNIQUE KEY checkout_sessions_token (token),
        UNIQUE KEY checkout_sessions_transaction (transaction_id),
        KEY checkout_sessions_subscription (subscription_id, created_at)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    // A session at a provider for a transaction: written before the provider is called, completed afterwards.
    await runner.query(`
      CREATE TABLE IF NOT EXISTS provider_sessions (
        id BIGINT NOT NULL AUTO_INCREMENT,
        app_id BIGINT NOT NULL,
        transaction_id BIGINT NOT NULL,
        provider VARCHAR(32) ${exact} NOT NULL,
        reference VARCHAR(191) ${exact} NULL,
        url VARCHAR(2048) ${exact} NULL,
        amount BIGINT NOT NULL,
        currency CHAR(3) ${exact} NOT NULL,
        status VARCHAR(16) ${exact} NOT NULL,
        expires_at DATETIME(3) NOT NULL,
        lookups INT NOT NULL,
        next_lookup_at DATETIME(3) NULL,
        created_at DATETIME(3) NOT NULL,
        updated_at DATETIME(3) NOT NULL,
        PRIMARY KEY (id),
        UNIQUE KEY provider_sessions_reference (provider, reference),
        KEY provider_sessions_transaction (transaction_id),
        KEY provider_sessions_lookup (status, next_lookup_at)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    await runner.query(`
      CREATE TABLE IF NOT EXISTS provider_events (
        id BIGINT NOT NULL AUTO_INCREMENT,
        provider VARCHAR(32) ${exact} NOT NULL,
        event_id VARCHAR(191) ${exact} NOT NULL,
        event_type VARCHAR(64) ${exact} NOT NULL,
        app_id BIGINT NULL,
        transaction_id BIGINT NULL,
        outcome VARCHAR(32) ${exact} NOT NULL,
        note VARCHAR(500) NULL,
        received_at DATETIME(3) NOT NULL,
        PRIMARY KEY (id),
        UNIQUE KEY provider_events_provider_event (provider, event_id),
        KEY provider_events_transaction (transaction_id),
        KEY provider_events_outcome (outcome, received_at)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    await runner.query(`
      CREATE TABLE IF NOT EXISTS bank_mails (
        id BIGINT NOT NULL AUTO_INCREMENT,
        received_at DATETIME(3) NOT NULL,
        message_id_hash CHAR(64) ${exact} NULL,
        content_hash CHAR(64) ${exact} NOT NULL,
        bank VARCHAR(32) ${exact} NULL,
        bank_reference VARCHAR(191) ${exact} NULL,
        amount BIGINT NULL,
        transfer_code VARCHAR(12) ${exact} NULL,
        status VARCHAR(32) ${exact} NOT NULL,
        reason VARCHAR(64) ${exact} NULL,
        app_id BIGINT NULL,
        bank_account_id BIGINT NULL,
        transaction_id BIGINT NULL,
        paid_at DATETIME(3) NULL,
        matched_at DATETIME(3) NULL,
        PRIMARY KEY (id),
        KEY bank_mails_received (received_at, id),
        KEY bank_mails_status (status, reason, received_at),
        KEY bank_mails_content (content_hash),
        KEY bank_mails_transaction (transaction_id)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
  }

  down(): Promise<void> {
    throw new Error('the first tables cannot be removed: restore a backup')
  }
}
