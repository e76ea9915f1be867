import type { QueryRunner } from 'typeorm'
import type { Migration } from './migration.ts'

/** The API secrets of an app that a rotation left valid for a while, and the webhook secret that was prepared. */
export class OverlappingSecrets1795200000036 implements Migration {
  readonly phase = 'expand'
  readonly work = { apps: ['instant', 'instant'] } as const

  async up(runner: QueryRunner): Promise<void> {
    for (const column of ['earlier_api_secrets', 'next_webhook_secret'])
      if (!(await runner.hasColumn('apps', column)))
        await runner.query(`ALTER TABLE apps ADD COLUMN ${column} TEXT NULL`)
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE apps DROP COLUMN next_webhook_secret, DROP COLUMN earlier_api_secrets')
  }
}
