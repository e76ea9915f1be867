import type { QueryRunner } from 'typeorm'
import type { Migration } from './migration.ts'

/** The settings of an app's pages and mails, as JSON; null until there are any. */
export class PageSettings1795200000023 implements Migration {
  readonly work = {
    apps: ['instant'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    if (await runner.hasColumn('apps', 'page_settings')) return
    await runner.query('ALTER TABLE apps ADD COLUMN page_settings TEXT NULL')
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE apps DROP COLUMN page_settings')
  }
}
