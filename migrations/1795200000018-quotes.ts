import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

/**
 * A transaction keeps what it was opened for and what was promised; a line of the ledger keeps when its payment was opened. With the
 * defaults, an older daemon can still insert rows: `start` extends if the plan is the same.
 */
export class Quotes1795200000018 implements Migration {
  readonly work = {
    transactions: ['instant', 'update', 'update'],
    payment_applications: ['instant'],
    subscriptions: ['copy'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
    if (!(await runner.hasColumn('transactions', 'purpose')))
      await runner.query(`ALTER TABLE transactions
         ADD COLUMN purpose VARCHAR(16) ${exact} NOT NULL DEFAULT 'start',
         ADD COLUMN is_renewal TINYINT NOT NULL DEFAULT 0,
         ADD COLUMN quoted_revision BIGINT NULL,
         ADD COLUMN quoted_end DATETIME(3) NULL`)
    if (!(await runner.hasColumn('payment_applications', 'opened_at')))
      await runner.query(`ALTER TABLE payment_applications
         ADD COLUMN opened_at DATETIME(3) NULL,
         ADD COLUMN is_accepted TINYINT NOT NULL DEFAULT 0`)
    await reconstructQuotes(runner)
    await reconstructSwitches(runner)
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      'ALTER TABLE transactions DROP COLUMN purpose, DROP COLUMN is_renewal, DROP COLUMN quoted_revision, DROP COLUMN quoted_end',
    )
    await runner.query(`DELETE FROM payment_applications WHERE kind IN ('switched', 'ended')`)
    await runner.query('ALTER TABLE payment_applications DROP COLUMN opened_at, DROP COLUMN is_accepted')
  }
}

/**
 * Reconstructs quotes from the applications of payments or, for payments that were not applied, from the period that they were opened to
 * renew.
 */
async function reconstructQuotes(runner: QueryRunner): Promise<void> {
  await runner.query(`
    UPDATE transactions t JOIN checkout_sessions c ON c.transaction_id = t.id
    SET t.is_renewal = 1 WHERE c.origin = 'renewal'`)
  await runner.query(`
    UPDATE transactions t
    LEFT JOIN payment_applications a ON a.transaction_id = t.id
    LEFT JOIN payment_applications b ON b.subscription_id = a.subscription_id AND b.revision =
      (SELECT MAX(e.revision) FROM payment_applications e WHERE e.subscription_id = a.subscription_id AND e.revision < a.revision)
    LEFT JOIN subscriptions s ON s.end_user_id = t.end_user_id
    SET t.purpose = CASE
        WHEN t.mode = 'payment' THEN 'purchase'
        WHEN t.is_trial = 1 THEN 'trial'
        WHEN t.is_renewal = 1 THEN 'extend'
        WHEN t.renews_end IS NULL OR t.renews_end <= t.created_at THEN 'start'
        WHEN a.kind = 'extended' THEN 'extend'
        WHEN COALESCE(b.plan_id, s.plan_id) = t.plan_id THEN 'extend'
        ELSE 'change' END,
      t.quoted_revision = b.revision,
      t.quoted_end = a.end_after
    WHERE t.quoted_revision IS NULL`)
}

/**
 * Earlier versions wrote no line for a plan switch. The last switch of a subscription shows as a plan or price other than that of its last
 * line.
 */
async function reconstructSwitches(runner: QueryRunner): Promise<void> {
  await runner.query(`
    INSERT INTO payment_applications (app_id, subscription_id, revision, transaction_id, kind, plan_id, price_id, interval_unit,
      interval_count, is_trial, end_before, anchor_before, period_start, end_after, anchor_after, applied_at)
    SELECT s.app_id, s.id, s.revision, NULL, 'switched', s.plan_id, s.price_id, p.interval_unit,
      p.interval_count, s.in_trial, s.current_period_end, s.anchor_day, s.period_start, s.current_period_end, s.anchor_day, s.updated_at
    FROM subscriptions s
    JOIN prices p ON p.id = s.price_id
    JOIN payment_applications l ON l.subscription_id = s.id AND l.revision =
      (SELECT MAX(e.revision) FROM payment_applications e WHERE e.subscription_id = s.id)
    WHERE (l.plan_id <> s.plan_id OR l.price_id <> s.price_id) AND l.revision < s.revision`)
}
