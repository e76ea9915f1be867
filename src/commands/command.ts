import { z } from 'zod'
import type { Config } from '#config/config.ts'
import type { AuditChange } from './audit.ts'
import type { Caller } from './caller.ts'
import type { Tx } from './transaction.ts'

/** The transaction of a command: it knows the caller and records what changes. */
export interface CommandTx extends Tx {
  readonly caller: Caller
  /** 64 hex characters, random and the same in every attempt; empty if the command `isRepeatable`. */
  readonly token: string
  /** Writes a change to the audit log. Its `action` is the command's name unless given. */
  readonly audit: (change: Omit<AuditChange, 'action'> & Partial<Pick<AuditChange, 'action'>>) => Promise<void>
}

/**
 * A change as a value. Only `perform` runs it. `Scope` is what the calling code knows for certain, such as the app and the ids of a path.
 * `input` is the schema of untrusted input, which somebody typed or sent.
 */
export interface Command<Scope, Result> {
  /** `plan.create`: the action of its audit entries. */
  readonly name: string
  readonly input: InputSchema<z.ZodType>
  /**
   * Whether a second run, after the answer to COMMIT was lost, gives the same result because a unique row or a condition decides.
   * Otherwise `perform` uses a token to find out whether the first run was committed.
   */
  readonly isRepeatable: boolean
  /**
   * For a command that writes `tx.token` to a unique column of its own, unless it can be repeated: whether that row exists. Uses a locking
   * read, which waits for a commit under way. If absent, `perform` writes a row for the token.
   */
  readonly findToken?: FindToken | undefined
  run(tx: CommandTx, input: unknown, scope: Scope): Promise<Result>
}

export type FindToken = (tx: Tx, token: string) => Promise<boolean>

/** A schema, or a function that makes it from the settings. */
type InputSchema<Schema extends z.ZodType> = Schema | ((config: Config) => Schema)

/** The input of a command that needs only its scope: absent, or an empty object as the body of the call. */
export const nothing = z.strictObject({}).optional()

interface Definition<Schema extends z.ZodType, Scope, Result> {
  readonly name: string
  readonly input: InputSchema<Schema>
  readonly isRepeatable?: boolean
  readonly findToken?: FindToken
  /** The work, in one transaction. It may run several times: no network calls, no counters outside `tx`. */
  run(tx: CommandTx, input: z.output<Schema>, scope: Scope): Promise<Result>
}

export function command<Schema extends z.ZodType, Scope, Result>(
  definition: Definition<Schema, Scope, Result>,
): Command<Scope, Result> {
  const { name, input, isRepeatable = false, findToken } = definition
  // `perform` passes the output of `input`.
  const run = (tx: CommandTx, checked: unknown, scope: Scope): Promise<Result> =>
    definition.run(tx, checked as z.output<Schema>, scope)
  return { name, input, isRepeatable, findToken, run }
}
