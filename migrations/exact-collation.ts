import type { QueryRunner } from 'typeorm'

/** The collation that compares byte for byte, including trailing blanks; each server family has its own. */
export async function exactCollation(runner: QueryRunner): Promise<string> {
  const [row] = (await runner.query('SELECT VERSION() AS version')) as { version: string }[]
  return row?.version.includes('MariaDB') ? 'utf8mb4_nopad_bin' : 'utf8mb4_0900_bin'
}
