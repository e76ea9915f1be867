import { z } from 'zod'
import { command, nothing } from '#commands/command.ts'
import type { Tx } from '#commands/transaction.ts'
import { found } from '#shared/errors.ts'
import { operatorRole } from './operator-fields.ts'
import { deleteOperator, lockOperator, updateRole, type Operator } from './store.ts'

interface Named {
  readonly name: string
}

/** Gives an operator another role, from the next command on. Throws `not_found`. */
export const setOperatorRole = command({
  name: 'operator.set-role',
  input: z.strictObject({ role: operatorRole }),
  async run(tx, { role }, { name }: Named): Promise<Operator> {
    const before = await getLocked(tx, name)
    await updateRole(tx, name, role)
    await tx.audit({ subject: `operator ${name}`, before: { role: before.role }, after: { role } })
    return { ...before, role }
  },
})

/** Removes an operator: the key opens nothing any more. Throws `not_found`. */
export const removeOperator = command({
  name: 'operator.remove',
  input: nothing,
  async run(tx, _input, { name }: Named): Promise<Operator> {
    const before = await getLocked(tx, name)
    await deleteOperator(tx, name)
    await tx.audit({ subject: `operator ${name}`, before: { role: before.role } })
    return before
  },
})

async function getLocked(tx: Tx, name: string): Promise<Operator> {
  return found(await lockOperator(tx, name), `operator "${name}"`)
}
