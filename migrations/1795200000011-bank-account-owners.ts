import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

/** The owners of a bank account: the mailbox that its bank writes to, and the apps that have it or had it. */
export class BankAccountOwners1795200000011 implements Migration {
  readonly work = {
    bank_accounts: ['instant'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
    if (!(await runner.hasColumn('bank_accounts', 'mailbox')))
      await runner.query(`ALTER TABLE bank_accounts ADD COLUMN mailbox VARCHAR(254) ${exact} NULL`)
    await runner.query(`
      CREATE TABLE IF NOT EXISTS bank_account_assignments (
        id BIGINT NOT NULL AUTO_INCREMENT,
        app_id BIGINT NOT NULL,
        bank_account_id BIGINT NOT NULL,
        assigned_at DATETIME(3) NOT NULL,
        PRIMARY KEY (id),
        UNIQUE KEY bank_account_assignments_app_account (app_id, bank_account_id)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    for (const { appId, bankAccountId, at } of await earlierAssignments(runner)) {
      await runner.query(
        `INSERT INTO bank_account_assignments (app_id, bank_account_id, assigned_at)
         SELECT ?, ?, ? FROM DUAL WHERE NOT EXISTS
           (SELECT 1 FROM bank_account_assignments WHERE app_id = ? AND bank_account_id = ?)`,
        [appId, bankAccountId, at, appId, bankAccountId],
      )
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE bank_account_assignments')
    await runner.query('ALTER TABLE bank_accounts DROP COLUMN mailbox')
  }
}

/** Takes assignments from before this table existed from the audit log. */
async function earlierAssignments(runner: QueryRunner): Promise<{ appId: string; bankAccountId: number; at: Date }[]> {
  const entries = (await runner.query(
    `SELECT app_id AS appId, at, after_state AS afterState FROM audit_log
     WHERE action = 'bank-account.assign' AND app_id IS NOT NULL AND after_state IS NOT NULL ORDER BY id`,
  )) as { appId: string; at: Date; afterState: string }[]
  return entries.flatMap(({ appId, at, afterState }) => {
    const { bank_account_id: bankAccountId } = JSON.parse(afterState) as { bank_account_id?: unknown }
    return typeof bankAccountId === 'number' ? [{ appId, at, bankAccountId }] : []
  })
}
