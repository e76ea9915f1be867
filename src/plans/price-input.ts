import { z } from 'zod'
import { INTERVAL_UNITS, LARGEST_COUNT, TRIAL_UNITS, type IntervalUnit } from '#shared/interval.ts'
import { currencyCode, integer, text } from '#shared/validate.ts'
import type { RealTime } from '#shared/time.ts'
import type { Price } from './store.ts'

const trialUnit = z.enum(TRIAL_UNITS, 'must be day, week, month or year')
const intervalUnit = z.enum(INTERVAL_UNITS, 'must be day, week, month, year or lifetime')

const TrialInput = z
  .strictObject({ amount: integer(0), interval_unit: trialUnit, interval_count: integer(1) })
  .superRefine(({ interval_unit, interval_count }, check) => {
    if (interval_count > LARGEST_COUNT[interval_unit]) check.addIssue(tooLong(interval_unit))
  })

/** A price as `POST /plans` and `POST /plans/{id}/prices` take it (specification 4). */
export const PriceInput = z
  .strictObject({
    name: text(191).nullish(),
    amount: integer(1),
    currency: currencyCode,
    interval_unit: intervalUnit,
    interval_count: integer(1).optional(),
    trial: TrialInput.nullish(),
  })
  .superRefine(({ interval_unit, interval_count, trial }, check) => {
    if (interval_unit === 'lifetime') {
      if (interval_count !== undefined && interval_count !== 1)
        check.addIssue(fault('interval_count', 'must be 1 or left out for lifetime'))
      if (trial) check.addIssue(fault('trial', 'is not allowed on a lifetime price'))
      return
    }
    if (interval_count === undefined) check.addIssue(fault('interval_count', 'is required'))
    else if (interval_count > LARGEST_COUNT[interval_unit]) check.addIssue(tooLong(interval_unit))
  })

/** The row of a new price, on sale. */
export function priceRow(planId: number, input: z.infer<typeof PriceInput>, now: RealTime): Omit<Price, 'id'> {
  const { trial } = input
  return {
    planId,
    name: input.name ?? null,
    amount: input.amount,
    currency: input.currency,
    intervalUnit: input.interval_unit,
    intervalCount: input.interval_count ?? 1,
    trialAmount: trial?.amount ?? null,
    trialIntervalUnit: trial?.interval_unit ?? null,
    trialIntervalCount: trial?.interval_count ?? null,
    status: 'active',
    createdAt: now,
  }
}

function tooLong(unit: Exclude<IntervalUnit, 'lifetime'>) {
  return fault('interval_count', `must be at most ${LARGEST_COUNT[unit]}: a period lasts a hundred years at most`)
}

function fault(field: string, message: string) {
  return { code: 'custom' as const, path: [field], message }
}
