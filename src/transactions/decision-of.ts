import { auditName } from '#commands/caller.ts'
import type { CommandTx } from '#commands/command.ts'
import type { OperatorDecision } from './change-transaction.ts'

/** The caller's decision, as timelines show it. */
export function decisionOf({ caller }: Pick<CommandTx, 'caller'>, note: string): OperatorDecision {
  return { actor: auditName(caller), note }
}
