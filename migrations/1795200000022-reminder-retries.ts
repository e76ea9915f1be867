import type { QueryRunner } from 'typeorm'
import type { Migration } from './migration.ts'

/** A reminder that the mail server refused waits longer each time; due reminders are found by the end of the period alone. */
export class ReminderRetries1795200000022 implements Migration {
  readonly work = {
    reminders: ['instant'],
    subscriptions: ['index'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    if (!(await runner.hasColumn('reminders', 'failures'))) {
      await runner.query(
        'ALTER TABLE reminders ADD COLUMN failures INT NOT NULL DEFAULT 0, ADD COLUMN retry_at DATETIME(3) NULL',
      )
    }
    const indexes = (await runner.query(
      `SELECT 1 FROM information_schema.statistics
       WHERE table_schema = DATABASE() AND table_name = 'subscriptions' AND index_name = 'subscriptions_end' LIMIT 1`,
    )) as unknown[]
    if (indexes.length > 0) return
    await runner.query('ALTER TABLE subscriptions ADD KEY subscriptions_end (current_period_end, id)')
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE subscriptions DROP KEY subscriptions_end')
    await runner.query('ALTER TABLE reminders DROP COLUMN failures, DROP COLUMN retry_at')
  }
}
