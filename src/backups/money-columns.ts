/** Whether a column of whole numbers holds money: the name says so, in every version. */
export function isMoney(column: string): boolean {
  return column.split('_').some((word) => word === 'amount' || word === 'total' || word === 'discount')
}
