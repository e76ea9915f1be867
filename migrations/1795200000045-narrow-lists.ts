import type { QueryRunner } from 'typeorm'
import type { Migration } from './migration.ts'

const KEYS = [
  ['transactions', 'transactions_app_status', 'app_id, status, created_at, id'],
  ['subscriptions', 'subscriptions_app_plan', 'app_id, plan_id, external_ref'],
  ['promotions', 'promotions_app_page', 'app_id, on_page, status, valid_until'],
  ['realtime_writes', 'realtime_writes_due', 'app_id, state, wanted_at'],
] as const

/**
 * The keys for lists of transactions by status and of subscriptions by plan, and for finding out whether a payer can type a code on a page.
 */
export class NarrowLists1795200000045 implements Migration {
  readonly phase = 'expand'
  readonly work = {
    transactions: ['index'],
    subscriptions: ['index'],
    promotions: ['index'],
    realtime_writes: ['index'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    for (const [table, key, columns] of KEYS) {
      const [found] = (await runner.query(
        'SELECT 1 FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = ? AND index_name = ?',
        [table, key],
      )) as unknown[]
      if (!found) await runner.query(`ALTER TABLE ${table} ADD KEY ${key} (${columns})`)
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const [table, key] of KEYS) await runner.query(`ALTER TABLE ${table} DROP KEY ${key}`)
  }
}
