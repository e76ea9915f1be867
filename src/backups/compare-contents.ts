import { isDeepStrictEqual } from 'node:util'
import type { Contents } from './store.ts'

export interface Comparison {
  readonly rowsEqual: boolean
  readonly sumsEqual: boolean
}

/** Whether two databases have the same tables with the same numbers of rows, and the same sums of money. */
export function compareContents(one: Contents, other: Contents): Comparison {
  return {
    rowsEqual: isDeepStrictEqual({ ...one.rows }, { ...other.rows }),
    sumsEqual: isDeepStrictEqual(one.sums, other.sums),
  }
}
