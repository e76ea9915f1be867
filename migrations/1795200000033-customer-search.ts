import type { QueryRunner } from 'typeorm'
import type { Migration } from './migration.ts'

/** The key by which `find` leads from a customer to its transactions. */
export class CustomerSearch1795200000033 implements Migration {
  readonly work = { transactions: ['index'] } as const

  async up(runner: QueryRunner): Promise<void> {
    const [found] = (await runner.query(
      'SELECT 1 FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = ? AND index_name = ?',
      ['transactions', 'transactions_customer'],
    )) as unknown[]
    if (!found) await runner.query('ALTER TABLE transactions ADD KEY transactions_customer (customer_id)')
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE transactions DROP KEY transactions_customer')
  }
}
