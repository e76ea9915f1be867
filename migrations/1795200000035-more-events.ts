import type { QueryRunner } from 'typeorm'
import type { Migration } from './migration.ts'

/** The events that an app has opted in to, and the key for lists of events by type. */
export class MoreEvents1795200000035 implements Migration {
  readonly work = {
    apps: ['instant'],
    events: ['index'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    if (!(await runner.hasColumn('apps', 'more_events')))
      await runner.query('ALTER TABLE apps ADD COLUMN more_events TEXT NULL')
    const [found] = (await runner.query(
      'SELECT 1 FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = ? AND index_name = ?',
      ['events', 'events_app_type'],
    )) as unknown[]
    if (!found) await runner.query('ALTER TABLE events ADD KEY events_app_type (app_id, event_type, created_at, id)')
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE events DROP KEY events_app_type')
    await runner.query('ALTER TABLE apps DROP COLUMN more_events')
  }
}
