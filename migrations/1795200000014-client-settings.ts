import type { QueryRunner } from 'typeorm'
import type { Migration } from './migration.ts'

/** What an operator allows the clients of an identity-token app. With the defaults, an older daemon can still insert apps. */
export class ClientSettings1795200000014 implements Migration {
  readonly work = {
    apps: ['instant'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    if (await runner.hasColumn('apps', 'client_amounts')) return
    await runner.query(
      'ALTER TABLE apps ADD COLUMN client_amounts TINYINT NOT NULL DEFAULT 0, ADD COLUMN return_origins TEXT NULL',
    )
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE apps DROP COLUMN client_amounts, DROP COLUMN return_origins')
  }
}
