import { stringify } from 'csv-stringify/sync'
import { guardCell } from '#shared/formula-cell.ts'

/** Rows as CSV that no spreadsheet executes (R265), with a first line of names where `header` says so. */
export function formatCsv(
  rows: readonly Readonly<Record<string, unknown>>[],
  { header, columns }: { readonly header: boolean; readonly columns?: readonly string[] },
): string {
  return stringify([...rows], {
    header,
    ...(columns ? { columns: [...columns] } : {}),
    cast: { string: guardCell, boolean: String, object: (value) => JSON.stringify(value) },
    // To a spreadsheet that separates cells by semicolons, what follows one would be a cell of its own. Programs that read CSV, such as
    // `subscription import`, drop the blanks around a cell without quotation marks.
    quoted_match: /;|^\s|\s$/,
  })
}
