import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type * as resolution from '#decisions/resolution.ts'
import type * as balance from '#payments/balance.ts'
import type * as discount from '#promotions/discount.ts'
import type * as lifecycle from '#subscriptions/lifecycle.ts'

/** The files of the pure rules that every history goes through. */
export const RULE_FILES = [
  'src/subscriptions/lifecycle.ts',
  'src/payments/balance.ts',
  'src/promotions/discount.ts',
  'src/decisions/resolution.ts',
] as const

/** The rules as the service has them, or a mutant of them. */
export type Rules = Pick<
  typeof lifecycle,
  'decide' | 'planChoiceAfter' | 'purposeOf' | 'effectiveStatus' | 'isLifetime'
> &
  Pick<
    typeof balance,
    | 'balanceAfterArrival'
    | 'balanceAfterCompletion'
    | 'balanceAfterRefund'
    | 'balanceAfterMove'
    | 'keptOf'
    | 'dueOf'
    | 'movableOf'
  > &
  Pick<typeof discount, 'discounted'> &
  Pick<typeof resolution, 'resolutionRefusalOf' | 'amountToRefund' | 'wasSuperseded'>

/** The rules of the source tree under `root`. */
export async function loadRules(root: string): Promise<Rules> {
  const modules = await Promise.all(
    RULE_FILES.map((file) => import(pathToFileURL(join(root, file)).href) as Promise<object>),
  )
  return Object.assign({}, ...modules) as Rules
}
