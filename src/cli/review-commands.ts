import type { ReviewItem } from '#review/read-review.ts'
import { appCell, moneyCell } from './cells.ts'
import type { Commands, Texts } from './declaration.ts'
import type { Session } from './session.ts'
import { listOf, type TableOptions } from './table.ts'

/** `review`: what waits for an operator. */
export const commands: Commands = {
  review: {
    options: [['--app <app>', 'only of this app']],
    examples: ['review', 'review --app 1', 'review --json'],
    async run(session, _args, options: Texts<'app'>) {
      await printReview(session, options.app)
    },
  },
}

/** Prints the review queue, of the app that is named, or of all. */
export async function printReview({ ctx, out, app }: Session, named: string | undefined): Promise<void> {
  const { MAX_ITEMS, readReview } = await import('#review/read-review.ts')
  const only = named === undefined ? null : await app(named)
  const items = await readReview(ctx, only?.id ?? null)
  if (items.length === MAX_ITEMS) out.note(`only the oldest ${MAX_ITEMS} are listed`)
  out.result(items, () => out.table(reviewTable(items)))
}

function reviewTable(items: readonly ReviewItem[]): TableOptions {
  return {
    ...listOf(items, [
      ['waits', ({ age_seconds: age }) => ageWords(age)],
      ['app', appCell],
      ['what', ({ kind }) => kind.replaceAll('_', ' ')],
      ['amount', amountCell],
      ['about', ({ subject }) => subject],
      ['billing-cli …', ({ next_step: step }) => step.replace(/^billing-cli /, '')],
    ]),
    none: 'Nothing needs review.',
    right: ['waits', 'amount'],
  }
}

/** `₫99,000`; nothing where no money waits. */
export function amountCell({ amount, currency }: Pick<ReviewItem, 'amount' | 'currency'>): string | null {
  return currency === null ? null : moneyCell(amount, currency)
}

const UNITS = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
] as const

/** `3 d`, `5 h`, `12 min`, `40 s` */
export function ageWords(seconds: number): string {
  const unit = UNITS.find(([, length]) => seconds >= length)
  return unit ? `${Math.floor(seconds / unit[1])} ${unit[0]}` : `${seconds} s`
}
