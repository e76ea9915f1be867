import type { QueryRunner } from 'typeorm'
import type { Migration } from './migration.ts'

/**
 * A transaction may have two receipts about the same total: after a part was moved away, the same amount may arrive again. Each change of a
 * transaction adds its receipts once, under the end user's lock, so that no unique key is needed.
 */
export class RepeatedReceipts1795200000047 implements Migration {
  readonly phase = 'expand'
  readonly work = { receipts: ['index'] } as const

  async up(runner: QueryRunner): Promise<void> {
    if (await hasKey(runner, 'receipts_transaction')) return
    await runner.query(
      'ALTER TABLE receipts ADD KEY receipts_transaction (transaction_id), DROP KEY receipts_transaction_kind_total',
    )
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      `DELETE later FROM receipts later JOIN receipts earlier ON earlier.transaction_id = later.transaction_id
         AND earlier.kind = later.kind AND earlier.total = later.total AND earlier.id < later.id`,
    )
    await runner.query(
      `ALTER TABLE receipts ADD UNIQUE KEY receipts_transaction_kind_total (transaction_id, kind, total),
         DROP KEY receipts_transaction`,
    )
  }
}

async function hasKey(runner: QueryRunner, key: string): Promise<boolean> {
  const [found] = (await runner.query(
    `SELECT 1 FROM information_schema.statistics
     WHERE table_schema = DATABASE() AND table_name = 'receipts' AND index_name = ?`,
    [key],
  )) as unknown[]
  return found !== undefined
}
