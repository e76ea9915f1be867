import type { QueryRunner } from 'typeorm'
import type { Migration } from './migration.ts'

/** Finds when an app last accepted an event by one lookup in an index, however many it accepted. */
export class LastDeliveries1795200000010 implements Migration {
  readonly work = {
    events: ['index'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    const rows = (await runner.query(
      `SELECT 1 FROM information_schema.statistics
       WHERE table_schema = DATABASE() AND table_name = 'events' AND index_name = 'events_app_delivered' LIMIT 1`,
    )) as unknown[]
    if (rows.length > 0) return
    await runner.query('ALTER TABLE events ADD KEY events_app_delivered (app_id, delivered_at)')
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE events DROP KEY events_app_delivered')
  }
}
