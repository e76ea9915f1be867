import { exact, id, realTime } from '#db/columns.ts'
import { insertedNew } from '#db/database-error.ts'
import type { Queries } from '#db/queries.ts'
import { table, type Row } from '#db/table.ts'
import type { Tx } from '#commands/transaction.ts'
import type { Role } from './role.ts'

/** A person who works through SSH with a key of their own, and no other access to the machine. */
export const operators = table('operators', {
  id: id(),
  name: exact('name', 32),
  role: exact('role', 16).as<Role>(),
  createdAt: realTime('created_at'),
})
export type Operator = Row<typeof operators>

/** Whether the operator is new: false if there is one of this name. */
export async function insertOperator(tx: Tx, row: Omit<Operator, 'id'>): Promise<boolean> {
  return insertedNew('operators_name', tx.insert(operators, row))
}

export async function findOperator(db: Queries, name: string): Promise<Operator | null> {
  return db.one(operators, 'WHERE name = ?', [name])
}

export async function lockOperator(tx: Tx, name: string): Promise<Operator | null> {
  return tx.one(operators, 'WHERE name = ? FOR UPDATE', [name])
}

/** All operators, by name. */
export async function listOperatorRows(db: Queries): Promise<Operator[]> {
  return db.all(operators, 'ORDER BY name')
}

export async function updateRole(tx: Tx, name: string, role: Role): Promise<void> {
  await tx.update(operators, { name }, { role })
}

export async function deleteOperator(tx: Tx, name: string): Promise<void> {
  await tx.run('DELETE FROM operators WHERE name = ?', [name])
}
