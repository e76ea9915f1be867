import { z } from 'zod'
import { command } from '#commands/command.ts'
import { invalidField } from '#shared/errors.ts'
import { operatorName, operatorRole } from './operator-fields.ts'
import type { Role } from './role.ts'
import { insertOperator } from './store.ts'

/** Adds an operator. Throws `invalid_request` on `name` if there is one of this name. */
export const addOperator = command({
  name: 'operator.add',
  input: z.strictObject({ name: operatorName, role: operatorRole }),
  async run(tx, { name, role }): Promise<{ readonly name: string; readonly role: Role }> {
    if (!(await insertOperator(tx, { name, role, createdAt: tx.now })))
      throw invalidField('name', `${name} is an operator already: operator set-role changes the role`)
    await tx.audit({ subject: `operator ${name}`, after: { role } })
    return { name, role }
  },
})
