import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

/**
 * Receipts are claimed in the same way as reminders. A receipt that an older daemon has leased stays `due`, from the end of the lease on. A
 * receipt that an older daemon handed over has been `handed_over` until now, with the end of its two-minute lease as `next_try_at`.
 */
export class ReceiptClaims1795200000046 implements Migration {
  readonly phase = 'expand'
  readonly work = { receipts: ['instant', 'update'] } as const

  async up(runner: QueryRunner): Promise<void> {
    const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
    if (!(await runner.hasColumn('receipts', 'claimed_at'))) {
      await runner.query(
        `ALTER TABLE receipts
           ADD COLUMN claimed_at DATETIME(3) NULL,
           ADD COLUMN handed_over_at DATETIME(3) NULL,
           ADD COLUMN refused_to VARCHAR(254) ${exact} NULL,
           ADD COLUMN counted_on VARCHAR(10) ${exact} NULL`,
      )
    }
    await runner.query(
      `UPDATE receipts
       SET status = 'claimed', claimed_at = next_try_at - INTERVAL 2 MINUTE, handed_over_at = next_try_at - INTERVAL 2 MINUTE
       WHERE status = 'handed_over'`,
    )
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      `UPDATE receipts SET status = 'handed_over', next_try_at = handed_over_at + INTERVAL 2 MINUTE
       WHERE status = 'claimed' AND handed_over_at IS NOT NULL`,
    )
    await runner.query(`UPDATE receipts SET status = 'due' WHERE status IN ('claimed', 'failed')`)
    await runner.query(
      'ALTER TABLE receipts DROP COLUMN claimed_at, DROP COLUMN handed_over_at, DROP COLUMN refused_to, DROP COLUMN counted_on',
    )
  }
}
