import type { QueryRunner } from 'typeorm'
import type { Migration } from './migration.ts'

/** Gmail's request to confirm that a mailbox may be forwarded to a bank account's secret address. */
export class ForwardingRequests1795200000009 implements Migration {
  readonly work = {
    bank_mails: ['instant'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    if (await runner.hasColumn('bank_mails', 'forwarding')) return
    await runner.query('ALTER TABLE bank_mails ADD COLUMN forwarding TEXT NULL')
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE bank_mails DROP COLUMN forwarding')
  }
}
