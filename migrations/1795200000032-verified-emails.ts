import type { QueryRunner } from 'typeorm'
import type { Migration } from './migration.ts'

/** Whether the address of a customer was verified in the token with which an end user's client created the customer. */
export class VerifiedEmails1795200000032 implements Migration {
  readonly work = {
    customers: ['instant'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    if (await runner.hasColumn('customers', 'email_verified')) return
    await runner.query('ALTER TABLE customers ADD COLUMN email_verified TINYINT NULL')
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE customers DROP COLUMN email_verified')
  }
}
