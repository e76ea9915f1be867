import type { QueryRunner } from 'typeorm'
import type { Migration } from './migration.ts'

/** Counts the open checkouts of an end user in one index, without reading expired checkouts or the addresses in the rows. */
export class OpenCheckouts1795200000017 implements Migration {
  readonly work = {
    checkout_sessions: ['index'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    const rows = (await runner.query(
      `SELECT 1 FROM information_schema.statistics
       WHERE table_schema = DATABASE() AND table_name = 'checkout_sessions' AND index_name = 'checkout_sessions_end_user_expires' LIMIT 1`,
    )) as unknown[]
    if (rows.length > 0) return
    await runner.query(
      'ALTER TABLE checkout_sessions ADD KEY checkout_sessions_end_user_expires (end_user_id, expires_at, transaction_id)',
    )
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE checkout_sessions DROP KEY checkout_sessions_end_user_expires')
  }
}
