import type { QueryRunner } from 'typeorm'
import type { Migration } from './migration.ts'

/** Answers the API's most frequent question, who has access until when, by one lookup in one index. */
export class SubscriptionsByRef1795200000007 implements Migration {
  readonly work = {
    subscriptions: ['index'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    const rows = (await runner.query(
      `SELECT 1 FROM information_schema.statistics
       WHERE table_schema = DATABASE() AND table_name = 'subscriptions' AND index_name = 'subscriptions_app_ref' LIMIT 1`,
    )) as unknown[]
    if (rows.length > 0) return
    await runner.query('ALTER TABLE subscriptions ADD UNIQUE KEY subscriptions_app_ref (app_id, external_ref)')
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE subscriptions DROP KEY subscriptions_app_ref')
  }
}
