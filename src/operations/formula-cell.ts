/** What a spreadsheet would run, behind blanks and apostrophes; to some of them the wide forms are as the narrow ones. */
const FORMULA = /^[\s']*[=+\-@\t\r＝＋－＠]/u
const PLAIN_NUMBER = /^-?\d+(\.\d+)?$/

/**
 * A cell of a CSV file that no spreadsheet runs: an apostrophe stands before each whose first character that is not blank could begin a
 * formula, plain numbers aside (contract 7, Callers). One that begins so behind apostrophes gets another, so that `bareCell` finds back
 * every text.
 */
export function guardCell(text: string): string {
  return isFormula(text) ? `'${text}` : text
}

/** The text that `guardCell` was given. Any other apostrophe at a beginning stays. */
export function bareCell(cell: string): string {
  return cell.startsWith("'") && isFormula(cell.slice(1)) ? cell.slice(1) : cell
}

function isFormula(text: string): boolean {
  return FORMULA.test(text) && !PLAIN_NUMBER.test(text)
}
