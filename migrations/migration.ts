import type { MigrationInterface } from 'typeorm'

/**
 * What a step of a migration does to a table with rows:
 *
 * - `instant`: changes the definition; no row is read.
 * - `index`: reads every row to build an index.
 * - `rebuild`: rewrites every row, with all indexes.
 * - `update`: changes rows, which stay locked until the statement ends.
 * - `copy`: reads rows to fill another table.
 *
 * A single server locks a table only at the start and the end of the first three; on a Galera cluster, all writes wait in the meantime.
 */
export type TableWork = 'instant' | 'index' | 'rebuild' | 'update' | 'copy'

/**
 * Whether daemons that do not know a migration work with its result:
 *
 * - `expand`: they do. It adds tables, columns that may be null or have a default, and indexes.
 * - `contract`: they do not. It removes or narrows what the previous version still used; `migrate --contract` runs it. Its name begins with
 *   `Contract`, by which the previous version refuses the result.
 *
 * The first migrations declare neither: only daemons that know them work with them.
 */
export type Phase = 'expand' | 'contract'

/** A change of the schema. Each can be run again after an interruption: DDL commits as it goes. */
export interface Migration extends MigrationInterface {
  readonly phase?: Phase | undefined
  /** The tables of earlier migrations that it works on, each with its steps in order. */
  readonly work: Readonly<Record<string, readonly TableWork[]>>
}
