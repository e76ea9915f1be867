import { z } from 'zod'
import type { App } from '#apps/store.ts'
import { command } from '#commands/command.ts'
import { onDuplicate } from '#db/database-error.ts'
import { AppError } from '#shared/errors.ts'
import { noFieldsLeft } from '#shared/no-fields-left.ts'
import { longText, name } from '#shared/validate.ts'
import { presentPlan } from './present.ts'
import { PriceInput, priceRow } from './price-input.ts'
import { getPlan, insertPlan, insertPrices } from './store.ts'

export const CreatePlanInput = z
  .strictObject({
    code: z
      .string()
      .regex(/^[a-z0-9_-]{1,64}$/, 'must be 1 to 64 characters of a-z, 0-9, _ and -')
      .describe('Your name for the plan, unique in the app: 1 to 64 characters of `a-z 0-9 _ -`. It never changes.'),
    name: name(191).describe('Shown to payers.'),
    description: longText(5000).nullish().describe('What the plan includes.'),
    prices: z.array(PriceInput).min(1, 'must contain at least 1 price').max(20, 'must hold at most 20 prices'),
  })
  .meta({
    examples: [
      {
        code: 'premium',
        name: 'Premium',
        prices: [
          {
            name: 'Monthly',
            amount: 99000,
            currency: 'VND',
            interval_unit: 'month',
            interval_count: 1,
            trial: { amount: 0, interval_unit: 'day', interval_count: 7 },
          },
          { name: 'Lifetime', amount: 1990000, currency: 'VND', interval_unit: 'lifetime' },
        ],
      },
    ],
  })

/** Creates a plan with its first prices. Throws `plan_code_taken` if the app has a plan with this code. */
export const createPlan = command({
  name: 'plan.create',
  input: CreatePlanInput,
  async run(tx, { code, name, description = null, prices, ...others }, { app }: { readonly app: App }) {
    noFieldsLeft(others)
    const row = {
      appId: app.id,
      code,
      name,
      description,
      status: 'active' as const,
      createdAt: tx.now,
      updatedAt: tx.now,
    }
    const planId = await onDuplicate('plans_app_code', insertPlan(tx, row), () => codeTaken(code))
    await insertPrices(
      tx,
      prices.map((price) => priceRow(planId, price, tx.now)),
    )
    const plan = await getPlan(tx, app.id, planId)
    await tx.audit({ appId: app.id, subject: `plan ${planId}`, after: presentPlan(plan) })
    return plan
  },
})

function codeTaken(code: string): AppError {
  return new AppError('plan_code_taken', `code: another plan of this app has the code "${code}"`, { field: 'code' })
}
