import { escapeId } from 'mysql2'

/** The name of a table, column or database as SQL writes it, whatever characters it has. */
export function named(identifier: string): string {
  return escapeId(identifier, true)
}
