import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

export class EventsAndOperations1795200000005 implements Migration {
  readonly work = {}

  async up(runner: QueryRunner): Promise<void> {
    const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
    await runner.query(`
      CREATE TABLE IF NOT EXISTS events (
        id BIGINT NOT NULL AUTO_INCREMENT,
        app_id BIGINT NOT NULL,
        event_type VARCHAR(64) ${exact} NOT NULL,
        external_ref VARCHAR(191) ${exact} NULL,
        transaction_id BIGINT NULL,
        body MEDIUMBLOB NOT NULL,
        delivery_status VARCHAR(16) ${exact} NOT NULL,
        attempts INT NOT NULL,
        retries_left INT NOT NULL,
        next_attempt_at DATETIME(3) NULL,
        lease_token VARCHAR(64) ${exact} NULL,
        lease_until DATETIME(3) NULL,
        delivered_at DATETIME(3) NULL,
        last_error VARCHAR(500) NULL,
        created_at DATETIME(3) NOT NULL,
        written_at DATETIME(3) NOT NULL,
        PRIMARY KEY (id),
        KEY events_app_created (app_id, created_at, id),
        KEY events_due (delivery_status, next_attempt_at, id),
        KEY events_app_due (app_id, delivery_status, next_attempt_at, id),
        KEY events_lease (lease_token),
        KEY events_transaction (transaction_id),
        KEY events_app_ref (app_id, external_ref, id)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    await runner.query(`
      CREATE TABLE IF NOT EXISTS delivery_attempts (
        id BIGINT NOT NULL AUTO_INCREMENT,
        event_id BIGINT NOT NULL,
        attempt INT NOT NULL,
        started_at DATETIME(3) NOT NULL,
        duration_ms INT NOT NULL,
        http_status INT NULL,
        error VARCHAR(500) NULL,
        response_head TEXT NULL,
        PRIMARY KEY (id),
        KEY delivery_attempts_event (event_id, id)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    await runner.query(`
      CREATE TABLE IF NOT EXISTS idempotency_keys (
        id BIGINT NOT NULL AUTO_INCREMENT,
        app_id BIGINT NOT NULL,
        path_hash CHAR(64) ${exact} NOT NULL,
        idempotency_key VARCHAR(255) ${exact} NOT NULL,
        request_hash CHAR(64) ${exact} NOT NULL,
        lease_token VARCHAR(64) ${exact} NOT NULL,
        lease_until DATETIME(3) NOT NULL,
        answer_status INT NULL,
        answer_body MEDIUMBLOB NULL,
        created_at DATETIME(3) NOT NULL,
        PRIMARY KEY (id),
        UNIQUE KEY idempotency_keys_app_path_key (app_id, path_hash, idempotency_key),
        KEY idempotency_keys_created (created_at)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    await runner.query(`
      CREATE TABLE IF NOT EXISTS audit_log (
        id BIGINT NOT NULL AUTO_INCREMENT,
        at DATETIME(3) NOT NULL,
        actor VARCHAR(191) NOT NULL,
        action VARCHAR(64) ${exact} NOT NULL,
        app_id BIGINT NULL,
        subject VARCHAR(255) ${exact} NOT NULL,
        before_state TEXT NULL,
        after_state TEXT NULL,
        reason VARCHAR(500) NULL,
        PRIMARY KEY (id),
        KEY audit_log_at (at, id),
        KEY audit_log_subject (subject, id)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    await runner.query(`
      CREATE TABLE IF NOT EXISTS job_runs (
        id BIGINT NOT NULL AUTO_INCREMENT,
        job VARCHAR(64) ${exact} NOT NULL,
        daemon VARCHAR(191) NOT NULL,
        started_at DATETIME(3) NOT NULL,
        finished_at DATETIME(3) NULL,
        outcome VARCHAR(16) ${exact} NULL,
        summary TEXT NULL,
        PRIMARY KEY (id),
        KEY job_runs_job (job, id)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
  }

  down(): Promise<void> {
    throw new Error('the first tables cannot be removed: restore a backup')
  }
}
