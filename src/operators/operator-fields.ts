import { z } from 'zod'
import { ROLES } from './role.ts'

/** A name as the audit log and `authorized_keys` carry it. */
export const operatorName = z
  .string()
  .regex(/^[a-z][a-z0-9._-]{0,31}$/, 'must be 1 to 32 of a-z, 0-9, dot, dash and underscore, a letter first')

export const operatorRole = z.enum(ROLES, `must be ${ROLES.slice(0, -1).join(', ')} or ${ROLES.at(-1)}`)
