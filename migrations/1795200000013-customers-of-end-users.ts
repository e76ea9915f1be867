import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

/** The end user whose client created a customer, and the number of the customer among the few of that end user. */
export class CustomersOfEndUsers1795200000013 implements Migration {
  readonly work = {
    customers: ['rebuild'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
    if (await runner.hasColumn('customers', 'end_user')) return
    await runner.query(
      `ALTER TABLE customers ADD COLUMN end_user VARCHAR(191) ${exact} NULL, ADD COLUMN end_user_slot TINYINT NULL,
       ADD UNIQUE KEY customers_app_end_user (app_id, end_user, end_user_slot)`,
    )
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      'ALTER TABLE customers DROP KEY customers_app_end_user, DROP COLUMN end_user, DROP COLUMN end_user_slot',
    )
  }
}
