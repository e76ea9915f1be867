import type { Role } from '#operators/role.ts'

/** Who runs a command line. */
export interface Who {
  /** As `operator add` named them; null for the account that runs the program. */
  readonly name: string | null
  readonly role: Role
}

/** Whoever has an account of the machine, and the settings, may do everything. */
export const ACCOUNT: Who = { name: null, role: 'owner' }

/** Whether they came through SSH and `as`, and can use nothing of the machine but this program. */
export function isRemote({ name }: Who): boolean {
  return name !== null
}
