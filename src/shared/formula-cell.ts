/** A formula to a spreadsheet, behind blanks and apostrophes. Some spreadsheets treat full-width signs like the plain ones. */
const FORMULA = /^[\s']*[=+\-@\t\r＝＋－＠]/u
const PLAIN_NUMBER = /^-?\d+(\.\d+)?$/

/**
 * A CSV cell that no spreadsheet executes: text whose first non-blank character could begin a formula gets an apostrophe, except for plain
 * numbers (R265). So does such text behind apostrophes, so that `bareCell` restores every text.
 */
export function guardCell(text: string): string {
  return isFormula(text) ? `'${text}` : text
}

/** Undoes `guardCell`. Any other leading apostrophe stays. */
export function bareCell(cell: string): string {
  return cell.startsWith("'") && isFormula(cell.slice(1)) ? cell.slice(1) : cell
}

function isFormula(text: string): boolean {
  return FORMULA.test(text) && !PLAIN_NUMBER.test(text)
}
