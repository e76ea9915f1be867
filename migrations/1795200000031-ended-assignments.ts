import type { QueryRunner } from 'typeorm'
import type { Migration } from './migration.ts'

/** When an app was given another bank account, so that money moves between apps only if both used the account. */
export class EndedAssignments1795200000031 implements Migration {
  readonly work = {
    bank_account_assignments: ['instant', 'update'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    if (!(await runner.hasColumn('bank_account_assignments', 'ended_at')))
      await runner.query('ALTER TABLE bank_account_assignments ADD COLUMN ended_at DATETIME(3) NULL')
    // The audit log records when an app was given another account.
    await runner.query(`
      UPDATE bank_account_assignments a JOIN apps ON apps.id = a.app_id
      SET a.ended_at = COALESCE(
        (SELECT MAX(l.at) FROM audit_log l
         WHERE l.action = 'bank-account.assign' AND l.app_id = a.app_id
           AND JSON_EXTRACT(l.before_state, '$.bank_account_id') = a.bank_account_id),
        UTC_TIMESTAMP(3))
      WHERE a.ended_at IS NULL AND (apps.bank_account_id IS NULL OR apps.bank_account_id <> a.bank_account_id)`)
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE bank_account_assignments DROP COLUMN ended_at')
  }
}
