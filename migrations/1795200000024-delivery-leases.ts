import type { QueryRunner } from 'typeorm'
import type { Migration } from './migration.ts'

/**
 * The lease of an event becomes a number that is never null, so that a claim does not change the length of the row. Drops two indexes that
 * every delivery had to write: due events are found by app.
 */
export class DeliveryLeases1795200000024 implements Migration {
  readonly work = {
    events: ['instant', 'update', 'index'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    if (!(await runner.hasColumn('events', 'lease'))) {
      await runner.query('ALTER TABLE events ADD COLUMN lease BIGINT NOT NULL DEFAULT 0')
    }
    if (!(await runner.hasColumn('events', 'lease_token'))) return
    // Their sender died: the sender that takes them over recognizes that by the lease.
    await runner.query('UPDATE events SET lease = 1 WHERE lease_token IS NOT NULL')
    await runner.query('ALTER TABLE events DROP KEY events_due, DROP KEY events_lease, DROP COLUMN lease_token')
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      `ALTER TABLE events ADD COLUMN lease_token VARCHAR(64) NULL, ADD KEY events_lease (lease_token),
         ADD KEY events_due (delivery_status, next_attempt_at, id)`,
    )
    await runner.query('UPDATE events SET lease_token = lease WHERE lease <> 0')
    await runner.query('ALTER TABLE events DROP COLUMN lease')
  }
}
