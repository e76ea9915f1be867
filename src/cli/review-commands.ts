import { amountCell, appCell } from './cells.ts'
import { APP } from './declaration.ts'
import { listOfApps, type OfApps } from './list.ts'

const review = listOfApps({
  options: [APP],
  examples: ['review', 'review --app 1', 'review --json'],
  async rows({ ctx, app, out }: OfApps) {
    const { MAX_ITEMS, readReview } = await import('#review/read-review.ts')
    const items = await readReview(ctx, app?.id ?? null)
    if (items.length === MAX_ITEMS) out.note(`only the oldest ${MAX_ITEMS} are listed`)
    return items
  },
  columns: () => [
    ['waits', ({ age_seconds: age }) => ageWords(age)],
    ['app', appCell],
    ['what', ({ kind }) => kind.replaceAll('_', ' ')],
    ['amount', amountCell],
    ['about', ({ subject }) => subject],
    ['billing-cli …', ({ next_step: step }) => step.replace(/^billing-cli /, '')],
  ],
  none: () => 'Nothing needs review.',
  right: ['waits', 'amount'],
})

/** `review`: what waits for an operator. */
export const commands = { review }

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
