import type { QueryRunner } from 'typeorm'
import type { Migration } from './migration.ts'

/** Drops an index that every delivery had to write: the last event that an app accepted is found among its newest events. */
export class CheaperDeliveries1795200000028 implements Migration {
  readonly work = {
    events: ['index'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    const [found] = (await runner.query(
      `SELECT 1 FROM information_schema.statistics
       WHERE table_schema = DATABASE() AND table_name = 'events' AND index_name = 'events_app_delivered' LIMIT 1`,
    )) as unknown[]
    if (found) await runner.query('ALTER TABLE events DROP KEY events_app_delivered')
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE events ADD KEY events_app_delivered (app_id, delivered_at)')
  }
}
