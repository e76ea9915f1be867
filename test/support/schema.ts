import type { DataSource } from 'typeorm'

/** Every column and index, as comparable rows. */
export async function schemaOf(db: DataSource): Promise<unknown[]> {
  const columns: unknown[] = await db.query(
    `SELECT table_name, column_name, column_type, is_nullable, collation_name FROM information_schema.columns
     WHERE table_schema = DATABASE() ORDER BY table_name, column_name`,
  )
  const indexes: unknown[] = await db.query(
    `SELECT table_name, index_name, seq_in_index, column_name, non_unique FROM information_schema.statistics
     WHERE table_schema = DATABASE() ORDER BY table_name, index_name, seq_in_index`,
  )
  return [...columns, ...indexes]
}
