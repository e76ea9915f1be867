import type { QueryRunner } from 'typeorm'
import type { Migration } from './migration.ts'

/** The key by which the events of one type are listed. */
export class MoreEvents1795200000035 implements Migration {
  readonly work = { events: ['index'] } as const

  async up(runner: QueryRunner): Promise<void> {
    const [found] = (await runner.query(
      'SELECT 1 FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = ? AND index_name = ?',
      ['events', 'events_app_type'],
    )) as unknown[]
    if (!found) await runner.query('ALTER TABLE events ADD KEY events_app_type (app_id, event_type, created_at, id)')
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE events DROP KEY events_app_type')
  }
}
