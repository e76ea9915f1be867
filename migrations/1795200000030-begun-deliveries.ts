import type { QueryRunner } from 'typeorm'
import type { Migration } from './migration.ts'

/** An event records whether the request of its lease has begun, and whether its envelope contains its id. */
export class BegunDeliveries1795200000030 implements Migration {
  readonly work = {
    events: ['instant'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    if (await runner.hasColumn('events', 'begun')) return
    await runner.query(
      'ALTER TABLE events ADD COLUMN begun TINYINT NOT NULL DEFAULT 0, ADD COLUMN carries_id TINYINT NOT NULL DEFAULT 0',
    )
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE events DROP COLUMN begun, DROP COLUMN carries_id')
  }
}
