import { auditName } from '#commands/caller.ts'
import type { CommandTx } from '#commands/command.ts'
import type { Decision } from './change-transaction.ts'

/** The caller's decision, as timelines show it. */
export function decisionOf({ caller }: Pick<CommandTx, 'caller'>, note: string): Decision {
  return { actor: auditName(caller), note }
}
