import type { Context } from '#context.ts'
import { formatTimestamp } from '#shared/time.ts'
import { operatorName } from './operator-fields.ts'
import type { Role } from './role.ts'
import { findOperator, listOperatorRows } from './store.ts'

/** An operator as lists show one. */
export interface ShownOperator {
  readonly name: string
  readonly role: Role
  readonly created_at: string
}

/** All operators, by name. */
export async function listOperators(ctx: Context): Promise<ShownOperator[]> {
  const rows = await listOperatorRows(ctx.db)
  return rows.map(({ name, role, createdAt }) => ({ name, role, created_at: formatTimestamp(createdAt) }))
}

/** The role of the operator of this name; null if there is none. */
export async function roleOfOperator(ctx: Context, name: string): Promise<Role | null> {
  const found = operatorName.safeParse(name).success ? await findOperator(ctx.db, name) : null
  return found && found.role
}
