import type { QueryRunner } from 'typeorm'
import type { Migration } from './migration.ts'

/** The keys that `find` searches without knowing the app: references of refunds and bank mails, and the subscription of a customer. */
const KEYS = [
  ['refunds', 'refunds_reference', 'reference'],
  ['bank_mails', 'bank_mails_reference', 'bank_reference'],
  // Longer than a key may be; two different message ids have only their beginning in common.
  ['bank_mails', 'bank_mails_message', 'message_id(100)'],
  ['subscriptions', 'subscriptions_customer', 'customer_id'],
] as const

export class SearchKeys1795200000027 implements Migration {
  readonly work = {
    refunds: ['index'],
    bank_mails: ['index', 'index'],
    subscriptions: ['index'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    for (const [table, key, column] of KEYS) {
      const [found] = (await runner.query(
        'SELECT 1 FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = ? AND index_name = ?',
        [table, key],
      )) as unknown[]
      if (!found) await runner.query(`ALTER TABLE ${table} ADD KEY ${key} (${column})`)
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const [table, key] of KEYS) await runner.query(`ALTER TABLE ${table} DROP KEY ${key}`)
  }
}
