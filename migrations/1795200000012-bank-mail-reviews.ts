import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

/** Bank mails that wait for an operator: why, when one was closed, and the message id by which to find it in a mailbox. */
export class BankMailReviews1795200000012 implements Migration {
  readonly work = {
    bank_mails: ['rebuild', 'update'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
    if (!(await runner.hasColumn('bank_mails', 'review')))
      await runner.query(`ALTER TABLE bank_mails
         ADD COLUMN message_id VARCHAR(998) ${exact} NULL,
         ADD COLUMN review VARCHAR(32) ${exact} NULL,
         ADD COLUMN closed_at DATETIME(3) NULL,
         ADD KEY bank_mails_review (review, received_at, id)`)
    // Money that came to an account's former address was kept and not listed.
    await runner.query(`
      UPDATE bank_mails SET review = 'credit'
      WHERE review IS NULL AND closed_at IS NULL AND matched_at IS NULL AND amount IS NOT NULL AND bank_account_id IS NOT NULL
        AND reason IN ('no_transfer_code', 'unknown_transaction', 'not_bank_transfer_transaction', 'bank_account_unavailable',
                       'invalid_recipient')
        AND NOT EXISTS (SELECT 1 FROM provider_events e
                        WHERE e.provider = 'bank_transfer' AND e.event_id = CONCAT('movement ', bank, ' ', bank_reference))`)
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      'ALTER TABLE bank_mails DROP KEY bank_mails_review, DROP COLUMN message_id, DROP COLUMN review, DROP COLUMN closed_at',
    )
  }
}
