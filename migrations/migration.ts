import type { MigrationInterface } from 'typeorm'

/**
 * What a step of a migration does to a table with rows:
 *
 * - `instant`: changes the definition; no row is read.
 * - `index`: reads every row to build an index.
 * - `rebuild`: writes every row anew, with all indexes.
 * - `update`: changes rows, which stay locked until the statement ends.
 * - `copy`: reads rows to fill another table.
 *
 * A single server locks a table only at the start and the end of the first three; on a Galera cluster nobody writes anything meanwhile.
 */
export type TableWork = 'instant' | 'index' | 'rebuild' | 'update' | 'copy'

/** A change of the schema. Each may be run again after it was cut short: DDL commits as it goes. */
export interface Migration extends MigrationInterface {
  /** The tables of earlier migrations that it works on, each with its steps in order. */
  readonly work: Readonly<Record<string, readonly TableWork[]>>
}
