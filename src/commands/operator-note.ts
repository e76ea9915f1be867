import { text } from '#shared/validate.ts'
import { auditName } from './caller.ts'
import type { CommandTx } from './command.ts'

/** The field of a command in which an operator says why; kept in the audit log. */
export const noteField = text(500)

/** The operator who decided something about money, and why, as timelines show it. */
export interface OperatorNote {
  readonly actor: string
  readonly note: string
}

export function noteOf({ caller }: Pick<CommandTx, 'caller'>, note: string): OperatorNote {
  return { actor: auditName(caller), note }
}
