import { z } from 'zod'
import type { Config } from '#config.ts'
import type { Change } from './audit.ts'
import type { Caller } from './caller.ts'
import type { Tx } from './transaction.ts'

/** The transaction of a command: it knows who asks, and notes what changes. */
export interface CommandTx extends Tx {
  readonly caller: Caller
  /** 64 hex characters, random and the same in every attempt; empty where the command `isRepeatable`. */
  readonly token: string
  /** Writes a change to the audit log, under the command's name unless it has an `action` of its own. */
  readonly audit: (change: Omit<Change, 'action'> & Partial<Pick<Change, 'action'>>) => Promise<void>
}

/**
 * A change as a value. Only `perform` runs it. `Scope` is what the code that asks for it knows for certain (the app, ids of a path);
 * `input` is the schema of what somebody typed or sent.
 */
export interface Command<Scope, Result> {
  /** `plan.create`: the action of its audit entries. */
  readonly name: string
  readonly input: InputSchema<z.ZodType>
  /**
   * Whether a second run, after a commit whose answer was lost, answers the same by itself, since a unique row or a condition decides.
   * Otherwise `perform` finds out by a token whether the first run was committed.
   */
  readonly isRepeatable: boolean
  /**
   * Where a row that the command always writes holds `tx.token`, unique: whether it is there, by a read that locks and so waits for a
   * commit that is under way. Absent: `perform` writes a row for the token.
   */
  readonly findToken?: FindToken | undefined
  run(tx: CommandTx, input: unknown, scope: Scope): Promise<Result>
}

export type FindToken = (tx: Tx, token: string) => Promise<boolean>

/** A schema, or how the settings make it. */
type InputSchema<Schema extends z.ZodType> = Schema | ((config: Config) => Schema)

/** The input of a command that its scope tells everything: absent, or the empty object that is the body of its call. */
export const nothing = z.strictObject({}).optional()

interface Definition<Schema extends z.ZodType, Scope, Result> {
  readonly name: string
  readonly input: InputSchema<Schema>
  readonly isRepeatable?: boolean
  readonly findToken?: FindToken
  /** The work, in one transaction. It may run several times: no network in it, no counters outside `tx`. */
  run(tx: CommandTx, input: z.output<Schema>, scope: Scope): Promise<Result>
}

export function command<Schema extends z.ZodType, Scope, Result>(
  definition: Definition<Schema, Scope, Result>,
): Command<Scope, Result> {
  const { name, input, isRepeatable = false, findToken } = definition
  // `perform` gives it what `input` made of the input.
  const run = (tx: CommandTx, checked: unknown, scope: Scope): Promise<Result> =>
    definition.run(tx, checked as z.output<Schema>, scope)
  return { name, input, isRepeatable, findToken, run }
}
