import { z } from 'zod'
import { INTERVAL_UNITS, MAX_COUNT, TRIAL_UNITS, type IntervalUnit } from '#shared/interval.ts'
import { noFieldsLeft } from '#shared/no-fields-left.ts'
import { currencyCode, integer, name } from '#shared/validate.ts'
import type { RealTime } from '#shared/time.ts'
import type { Price } from './store.ts'

const trialUnit = z.enum(TRIAL_UNITS, 'must be day, week, month or year')
const intervalUnit = z.enum(INTERVAL_UNITS, 'must be day, week, month, year or lifetime')

const TrialInput = z
  .strictObject({
    amount: integer(0).describe("What the trial costs, in the currency's smallest unit; 0 for a free trial."),
    interval_unit: trialUnit,
    interval_count: integer(1).describe('How many units the trial lasts, at most a hundred years.'),
  })
  .superRefine(({ interval_unit, interval_count }, check) => {
    if (interval_count > MAX_COUNT[interval_unit]) check.addIssue(tooLong(interval_unit))
  })

/** A price as `POST /plans` and `POST /plans/{id}/prices` take it. */
export const PriceInput = z
  .strictObject({
    name: name(191).nullish().describe('A label, such as `Monthly`.'),
    amount: integer(1).describe("In the currency's smallest unit: 99000 for VND 99,000, 990 for USD 9.90."),
    currency: currencyCode.describe('ISO 4217, in upper or lower case.'),
    interval_unit: intervalUnit.describe('`lifetime` is paid once and never ends.'),
    interval_count: integer(1)
      .optional()
      .describe('How many units one period lasts, at most a hundred years. Required, except for `lifetime`.'),
    trial: TrialInput.nullish().describe('Granted once per end user and plan. Not allowed for `lifetime`.'),
  })
  .superRefine(({ interval_unit, interval_count, trial }, check) => {
    if (interval_unit === 'lifetime') {
      if (interval_count !== undefined && interval_count !== 1)
        check.addIssue(issue('interval_count', 'must be 1 or left out for lifetime'))
      if (trial) check.addIssue(issue('trial', 'is not allowed on a lifetime price'))
      return
    }
    if (interval_count === undefined) check.addIssue(issue('interval_count', 'is required'))
    else if (interval_count > MAX_COUNT[interval_unit]) check.addIssue(tooLong(interval_unit))
  })
  .meta({
    examples: [{ name: 'Yearly', amount: 990000, currency: 'VND', interval_unit: 'year', interval_count: 1 }],
  })

/** The row of a new price, on sale. */
export function priceRow(planId: number, input: z.infer<typeof PriceInput>, now: RealTime): Omit<Price, 'id'> {
  const { name, amount, currency, interval_unit, interval_count, trial, ...others } = input
  noFieldsLeft(others)
  return {
    planId,
    name: name ?? null,
    amount,
    currency,
    intervalUnit: interval_unit,
    intervalCount: interval_count ?? 1,
    ...(trial ? trialColumns(trial) : NO_TRIAL),
    status: 'active',
    createdAt: now,
  }
}

const NO_TRIAL = { trialAmount: null, trialIntervalUnit: null, trialIntervalCount: null }

function trialColumns({ amount, interval_unit, interval_count, ...others }: z.infer<typeof TrialInput>) {
  noFieldsLeft(others)
  return { trialAmount: amount, trialIntervalUnit: interval_unit, trialIntervalCount: interval_count }
}

function tooLong(unit: Exclude<IntervalUnit, 'lifetime'>) {
  return issue('interval_count', `must be at most ${MAX_COUNT[unit]}: a period lasts a hundred years at most`)
}

function issue(field: string, message: string) {
  return { code: 'custom' as const, path: [field], message }
}
