/** What operators may do, the least first; each role may do what those before it may. */
export const ROLES = ['view', 'support', 'money', 'owner'] as const
export type Role = (typeof ROLES)[number]

/** Whether somebody of this role may do what needs `needed`. */
export function mayDo(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed)
}
