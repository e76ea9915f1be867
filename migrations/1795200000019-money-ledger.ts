import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

/**
 * Money gets its own ledger: payments whose owner may not be known yet, their allocations to transactions, refunds with an amount and a
 * status, and the history of each transaction. Existing rows are converted once. Their old columns are dropped last, so that an interrupted
 * run can begin again while they still exist.
 */
export class MoneyLedger1795200000019 implements Migration {
  readonly work = {
    payments: ['rebuild', 'copy', 'copy', 'copy', 'update', 'rebuild', 'index'],
    transactions: ['rebuild', 'update', 'update', 'update', 'update', 'update', 'copy', 'copy', 'copy'],
    bank_mails: ['rebuild', 'update', 'copy', 'update'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    await createTables(runner, `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`)
    await addColumns(runner)
    if (!(await runner.hasColumn('payments', 'transaction_id'))) return
    await bringPaymentsOver(runner)
    await bringTransactionsOver(runner)
    await bringBankMailsOver(runner)
    await runner.query(
      'ALTER TABLE payments DROP KEY payments_transaction, DROP COLUMN refunded_at, DROP COLUMN refund_reference, DROP COLUMN transaction_id',
    )
  }

  down(): Promise<void> {
    throw new Error('the ledger of money cannot be removed: restore a backup')
  }
}

async function createTables(runner: QueryRunner, exact: string): Promise<void> {
  await runner.query(`
    CREATE TABLE IF NOT EXISTS allocations (
      id BIGINT NOT NULL AUTO_INCREMENT,
      app_id BIGINT NOT NULL,
      payment_id BIGINT NOT NULL,
      transaction_id BIGINT NOT NULL,
      refund_id BIGINT NULL,
      amount BIGINT NOT NULL,
      cause VARCHAR(16) ${exact} NOT NULL,
      actor VARCHAR(191) NULL,
      note VARCHAR(500) NULL,
      at DATETIME(3) NOT NULL,
      PRIMARY KEY (id),
      KEY allocations_payment (payment_id),
      KEY allocations_transaction (transaction_id),
      KEY allocations_refund (refund_id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
  await runner.query(`
    CREATE TABLE IF NOT EXISTS refunds (
      id BIGINT NOT NULL AUTO_INCREMENT,
      app_id BIGINT NULL,
      payment_id BIGINT NOT NULL,
      amount BIGINT NOT NULL,
      status VARCHAR(16) ${exact} NOT NULL,
      reference VARCHAR(191) ${exact} NULL,
      failure VARCHAR(191) NULL,
      amount_used BIGINT NOT NULL,
      flag_reason VARCHAR(32) ${exact} NULL,
      actor VARCHAR(191) NULL,
      note VARCHAR(500) NULL,
      attempts INT NOT NULL,
      next_lookup_at DATETIME(3) NULL,
      created_at DATETIME(3) NOT NULL,
      ended_at DATETIME(3) NULL,
      PRIMARY KEY (id),
      UNIQUE KEY refunds_payment_reference (payment_id, reference),
      KEY refunds_lookup (status, next_lookup_at)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
  await runner.query(`
    CREATE TABLE IF NOT EXISTS transaction_changes (
      id BIGINT NOT NULL AUTO_INCREMENT,
      app_id BIGINT NOT NULL,
      transaction_id BIGINT NOT NULL,
      at DATETIME(3) NOT NULL,
      kind VARCHAR(16) ${exact} NOT NULL,
      flag_reason VARCHAR(32) ${exact} NULL,
      actor VARCHAR(191) NULL,
      note VARCHAR(500) NULL,
      PRIMARY KEY (id),
      KEY transaction_changes_transaction (transaction_id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
}

async function addColumns(runner: QueryRunner): Promise<void> {
  const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
  if (!(await runner.hasColumn('payments', 'amount_left')))
    await runner.query(`ALTER TABLE payments
      MODIFY COLUMN app_id BIGINT NULL,
      MODIFY COLUMN amount BIGINT NULL,
      ADD COLUMN end_user_id BIGINT NULL,
      ADD COLUMN provider_account_id BIGINT NULL,
      ADD COLUMN bank_account_id BIGINT NULL,
      ADD COLUMN charge_reference VARCHAR(191) ${exact} NULL,
      ADD COLUMN amount_left BIGINT NULL,
      ADD COLUMN closed_at DATETIME(3) NULL,
      ADD KEY payments_left (amount_left),
      ADD KEY payments_charge (charge_reference),
      ADD KEY payments_received (received_at, id)`)
  if (!(await runner.hasColumn('transactions', 'amount_left')))
    await runner.query(`ALTER TABLE transactions
      ADD COLUMN amount_refunded BIGINT NOT NULL DEFAULT 0,
      ADD COLUMN amount_used BIGINT NOT NULL DEFAULT 0,
      ADD COLUMN amount_left BIGINT NOT NULL DEFAULT 0,
      ADD KEY transactions_left (amount_left)`)
  if (!(await runner.hasColumn('bank_mails', 'payment_id')))
    await runner.query(
      'ALTER TABLE bank_mails ADD COLUMN payment_id BIGINT NULL, ADD KEY bank_mails_payment (payment_id)',
    )
}

/** One allocation each; refunded money becomes a refund that succeeded. */
async function bringPaymentsOver(runner: QueryRunner): Promise<void> {
  await runner.query(`
    INSERT INTO allocations (app_id, payment_id, transaction_id, refund_id, amount, cause, actor, note, at)
    SELECT p.app_id, p.id, p.transaction_id, NULL, p.amount, 'booked', NULL, NULL, p.received_at FROM payments p
    WHERE p.transaction_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM allocations a WHERE a.payment_id = p.id)
    ORDER BY p.id`)
  await runner.query(`
    INSERT INTO refunds (app_id, payment_id, amount, status, reference, failure, amount_used, flag_reason, actor, note, attempts, next_lookup_at, created_at, ended_at)
    SELECT p.app_id, p.id, p.amount, 'succeeded', p.refund_reference, NULL, 0, NULL, NULL, NULL, 0, NULL, p.refunded_at, p.refunded_at FROM payments p
    WHERE p.refunded_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM refunds r WHERE r.payment_id = p.id)
    ORDER BY p.id`)
  await runner.query(`
    INSERT INTO allocations (app_id, payment_id, transaction_id, refund_id, amount, cause, actor, note, at)
    SELECT p.app_id, p.id, p.transaction_id, r.id, -r.amount, 'refund', NULL, NULL, r.created_at
    FROM payments p JOIN refunds r ON r.payment_id = p.id
    WHERE p.transaction_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM allocations a WHERE a.refund_id = r.id)
    ORDER BY p.id`)
  await runner.query(`
    UPDATE payments p JOIN transactions t ON t.id = p.transaction_id
    SET p.amount_left = 0, p.end_user_id = t.end_user_id WHERE p.amount_left IS NULL`)
}

/** The state of each transaction's money: refunded, used, or left. */
async function bringTransactionsOver(runner: QueryRunner): Promise<void> {
  await runner.query(`
    UPDATE transactions t SET t.amount_refunded =
      COALESCE((SELECT SUM(p.amount) FROM payments p WHERE p.transaction_id = t.id AND p.refunded_at IS NOT NULL), 0)
    WHERE t.amount_received > 0`)
  // Money that waits: all that is kept or, for a duplicate, the part beyond the amount.
  await runner.query(`
    UPDATE transactions t SET t.amount_left = t.amount_received - t.amount_refunded
    WHERE t.amount_received > 0 AND t.flag_reason IS NOT NULL AND (t.flag_reason <> 'duplicate_payment' OR t.status = 'refunded')`)
  await runner.query(`
    UPDATE transactions t SET
      t.amount_left = CASE
        WHEN t.amount_received - t.amount_refunded > t.amount THEN t.amount_received - t.amount_refunded - t.amount
        ELSE COALESCE((SELECT p.amount FROM payments p WHERE p.transaction_id = t.id AND p.refunded_at IS NULL ORDER BY p.id DESC LIMIT 1), 0) END
    WHERE t.status = 'completed' AND t.flag_reason = 'duplicate_payment'`)
  // Money beyond the amount that was never decided about is a surplus.
  await runner.query(`
    UPDATE transactions t SET t.amount_left = GREATEST(t.amount_received - t.amount_refunded - t.amount, 0)
    WHERE t.status = 'completed' AND t.flag_reason IS NULL AND (t.resolution IS NULL OR t.resolution <> 'dismissed')`)
  await runner.query(`
    UPDATE transactions t SET t.amount_used = LEAST(t.amount_received - t.amount_refunded - t.amount_left, t.amount)
    WHERE t.status = 'completed' AND (t.flag_reason IS NULL OR t.flag_reason = 'duplicate_payment')`)
  await runner.query(`
    INSERT INTO transaction_changes (app_id, transaction_id, at, kind, flag_reason, actor, note)
    SELECT t.app_id, t.id, DATE_SUB(t.bank_page_opened_at, INTERVAL a.clock_offset_ms * 1000 MICROSECOND), 'bank_page', NULL, NULL, NULL
    FROM transactions t JOIN apps a ON a.id = t.app_id
    WHERE t.bank_page_opened_at IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM transaction_changes c WHERE c.transaction_id = t.id AND c.kind = 'bank_page')
    ORDER BY t.id`)
  await runner.query(`
    INSERT INTO transaction_changes (app_id, transaction_id, at, kind, flag_reason, actor, note)
    SELECT t.app_id, t.id, DATE_SUB(t.completed_at, INTERVAL a.clock_offset_ms * 1000 MICROSECOND), 'completed', NULL, NULL, NULL
    FROM transactions t JOIN apps a ON a.id = t.app_id
    WHERE t.completed_at IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM transaction_changes c WHERE c.transaction_id = t.id AND c.kind = 'completed')
    ORDER BY t.id`)
  await runner.query(`
    INSERT INTO transaction_changes (app_id, transaction_id, at, kind, flag_reason, actor, note)
    SELECT t.app_id, t.id, DATE_SUB(t.flagged_at, INTERVAL a.clock_offset_ms * 1000 MICROSECOND), 'flagged', t.flag_reason, NULL, NULL
    FROM transactions t JOIN apps a ON a.id = t.app_id
    WHERE t.flag_reason IS NOT NULL AND t.flagged_at IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM transaction_changes c WHERE c.transaction_id = t.id AND c.kind = 'flagged')
    ORDER BY t.id`)
}

/** Money that waits for an operator becomes a payment without an owner; mails that were booked name their payment. */
async function bringBankMailsOver(runner: QueryRunner): Promise<void> {
  await runner.query(`
    UPDATE bank_mails m JOIN payments p ON p.provider = 'bank_transfer' AND p.reference = CONCAT(m.bank, ' ', m.bank_reference)
    SET m.payment_id = p.id, p.bank_account_id = COALESCE(p.bank_account_id, m.bank_account_id) WHERE m.payment_id IS NULL`)
  await runner.query(`ALTER TABLE payments MODIFY COLUMN transaction_id BIGINT NULL`)
  // Of several mails about one movement, the first creates the payment.
  await runner.query(`
    INSERT INTO payments (app_id, transaction_id, provider, reference, amount, currency, paid_at, received_at, bank_account_id, amount_left)
    SELECT NULL, NULL, 'bank_transfer', w.reference, w.amount, 'VND', w.received_at, w.received_at, w.bank_account_id, w.amount
    FROM (SELECT ${REFERENCE} AS reference, MIN(CASE WHEN m.review = 'credit' THEN m.amount END) AS amount,
                 MIN(m.received_at) AS received_at, MIN(m.bank_account_id) AS bank_account_id
          FROM bank_mails m LEFT JOIN bank_accounts b ON b.id = m.bank_account_id
          WHERE m.review IS NOT NULL AND m.payment_id IS NULL GROUP BY ${REFERENCE}) w
    WHERE NOT EXISTS (SELECT 1 FROM payments p WHERE p.provider = 'bank_transfer' AND p.reference = w.reference)
    ORDER BY w.received_at, w.reference`)
  await runner.query(`
    UPDATE bank_mails m LEFT JOIN bank_accounts b ON b.id = m.bank_account_id
      JOIN payments p ON p.provider = 'bank_transfer' AND p.reference = ${REFERENCE}
    SET m.payment_id = p.id WHERE m.review IS NOT NULL AND m.payment_id IS NULL`)
}

/** The identity of a waiting mail's money: the bank's movement, or the mail itself. */
const REFERENCE = `CONCAT(COALESCE(m.bank, b.bank, '?'), ' ', COALESCE(m.bank_reference, CONCAT('content ', m.content_hash)))`
