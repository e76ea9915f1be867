import type { Context } from '#context.ts'
import type { Queries } from '#db/queries.ts'
import { validate } from '#shared/validate.ts'
import { randomHex } from '#shared/crypto.ts'
import { recordAudit } from './audit.ts'
import type { Caller } from './caller.ts'
import type { Command, CommandTx, FindToken } from './command.ts'
import { insertCommitToken } from './store.ts'
import { inTransaction, type Tx, type WasCommitted } from './transaction.ts'

export interface PerformOptions<Result> {
  /** Stores the answer for an `Idempotency-Key` as the last step of the command's transaction. */
  readonly keep?: ((queries: Queries, result: Result) => Promise<void>) | undefined
}

/**
 * The only way to run a command. Checks the input, opens the transaction, runs the work, writes its audit entries and the kept answer,
 * commits, and runs the work that follows the commit. In a rehearsal (`ctx.rehearsal`), records all changes there and rolls back. Throws
 * `invalid_request` for bad input, and what the command throws.
 *
 * If the answer to COMMIT was lost, returns the result of the run that was committed.
 */
export async function perform<Scope, Result>(
  ctx: Context,
  caller: Caller,
  command: Command<Scope, Result>,
  input: unknown,
  scope: Scope,
  { keep }: PerformOptions<Result> = {},
): Promise<Result> {
  const schema = typeof command.input === 'function' ? command.input(ctx.config) : command.input
  const checked = validate(schema, input)
  const token = command.isRepeatable ? '' : randomHex(32)
  const work = async (tx: Tx): Promise<Result> => {
    const audit: CommandTx['audit'] = (change) => recordAudit(tx, caller, { action: command.name, ...change })
    const result = await command.run({ ...tx, caller, audit, token }, checked, scope)
    await keep?.(tx, result)
    return result
  }
  return inTransaction(ctx, work, command.isRepeatable ? undefined : byToken(token, command.findToken))
}

/** Finds an earlier attempt by its token: in the command's own row, or in a token row, which each attempt inserts first. */
function byToken(token: string, findToken: FindToken | undefined): WasCommitted {
  if (findToken) return async (tx, attempt) => attempt > 1 && (await findToken(tx, token))
  return async (tx) => !(await insertCommitToken(tx, token.slice(0, 32), tx.now))
}
