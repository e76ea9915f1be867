import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

/** The discount of a promotion on a payment, 0 if there is none, and the promotion's code. */
export class Discounts1795200000037 implements Migration {
  readonly phase = 'expand'
  readonly work = {
    transactions: ['instant', 'instant'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    if (!(await runner.hasColumn('transactions', 'discount_amount')))
      await runner.query('ALTER TABLE transactions ADD COLUMN discount_amount BIGINT NOT NULL DEFAULT 0')
    if (await runner.hasColumn('transactions', 'promotion_code')) return
    const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
    await runner.query(`ALTER TABLE transactions ADD COLUMN promotion_code VARCHAR(40) ${exact} NULL`)
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE transactions DROP COLUMN promotion_code')
    await runner.query('ALTER TABLE transactions DROP COLUMN discount_amount')
  }
}
