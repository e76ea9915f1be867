import { z } from 'zod'
import type { App } from '#apps/store.ts'
import { command, type CommandTx } from '#commands/command.ts'
import { onDuplicate } from '#db/database-error.ts'
import { listUnknownPlanCodes } from '#plans/store.ts'
import { AppError, invalidField } from '#shared/errors.ts'
import { noFieldsLeft } from '#shared/no-fields-left.ts'
import { currencyCode, givenTime, integer } from '#shared/validate.ts'
import { presentPromotion } from './present.ts'
import { getPromotion, insertPromotion, type ShownPromotion } from './store.ts'

const MAX_PLANS = 100

const promotionCode = z
  .string()
  .regex(/^[A-Za-z0-9_-]{3,40}$/, 'must be 3 to 40 characters of A-Z, a-z, 0-9, _ and -')
  .transform((code) => code.toUpperCase())

const planCodes = z
  .array(z.string().regex(/^[a-z0-9_-]{1,64}$/, 'must be the code of a plan'))
  .min(1, 'must name at least 1 plan')
  .max(MAX_PLANS, `must name at most ${MAX_PLANS} plans`)
  .superRefine((codes, check) => {
    const twice = codes.findIndex((code, index) => codes.indexOf(code) < index)
    if (twice >= 0) check.addIssue({ code: 'custom', path: [twice], message: 'is named twice' })
  })

export const validUntil = givenTime
  .nullish()
  .describe("The promotion is over from then on, in the app's own time; null for no end.")
export const maxUses = integer(1).nullish().describe('How many payments may use it; null for any number.')

/** The body of `POST /api/v1/promotions` (R350). */
export const CreatePromotionInput = z
  .strictObject({
    code: promotionCode.describe(
      'What callers and payers give, in upper or lower case: 3 to 40 characters of `A-Z a-z 0-9 _ -`; kept in upper case, unique in the app.',
    ),
    percent: integer(1, 100).nullish().describe('What is taken off, in percent, rounded down to the smallest unit.'),
    amount: integer(1).nullish().describe("What is taken off instead, in the currency's smallest unit."),
    currency: currencyCode.nullish().describe('The currency of `amount`; the promotion fits prices in it.'),
    plan_codes: planCodes.nullish().describe('The codes of the plans that it is for; by default all.'),
    every_period: z
      .boolean()
      .optional()
      .describe('True to take the discount off every renewal, too; by default only the first payment gets it.'),
    valid_until: validUntil,
    max_uses: maxUses,
    once_per_user: z.boolean().optional().describe('By default, each end user may use it once. False lifts that.'),
    on_page: z.boolean().optional().describe('True to let payers type the code on the hosted page.'),
  })
  .superRefine(({ percent, amount, currency }, check) => {
    const issue = (field: string, message: string): void => check.addIssue({ code: 'custom', path: [field], message })
    const isPercent = (percent ?? null) !== null
    const isAmount = (amount ?? null) !== null
    const hasCurrency = (currency ?? null) !== null
    if (isPercent && isAmount) issue('amount', 'must not be given beside percent')
    else if (!isPercent && !isAmount) issue('percent', 'is required, or amount with currency instead')
    else if (isAmount && !hasCurrency) issue('currency', 'is required with amount')
    else if (isPercent && hasCurrency) issue('currency', 'must not be given with percent')
  })
  .meta({
    examples: [
      { code: 'TET2027', percent: 20, plan_codes: ['premium'], valid_until: '2027-02-28 16:59:59', max_uses: 500 },
      { code: 'WELCOME', amount: 30000, currency: 'VND', on_page: true },
    ],
  })

/** Creates a promotion. Throws `promotion_code_taken` if the app has one with this code, `invalid_request` for an unknown plan. */
export const createPromotion = command({
  name: 'promotion.create',
  input: CreatePromotionInput,
  async run(tx, input, { app }: { readonly app: App }): Promise<ShownPromotion> {
    const { code, percent, amount, currency, plan_codes, every_period, valid_until, max_uses, ...rest } = input
    const { once_per_user, on_page, ...others } = rest
    noFieldsLeft(others)
    if (plan_codes) await requirePlans(tx, app, plan_codes)
    const row = {
      appId: app.id,
      code,
      percent: percent ?? null,
      amount: amount ?? null,
      currency: currency ?? null,
      planCodes: plan_codes ?? null,
      everyPeriod: every_period ?? false,
      validUntil: valid_until ?? null,
      maxUses: max_uses ?? null,
      oncePerUser: once_per_user ?? true,
      onPage: on_page ?? false,
      status: 'active' as const,
      version: 0,
      createdAt: tx.now,
      updatedAt: tx.now,
    }
    const promotionId = await onDuplicate('promotions_app_code', insertPromotion(tx, row), () => codeTaken(code))
    const promotion = await getPromotion(tx, app.id, promotionId)
    await tx.audit({ appId: app.id, subject: `promotion ${promotionId}`, after: presentPromotion(promotion) })
    return promotion
  },
})

async function requirePlans(tx: CommandTx, app: App, codes: readonly string[]): Promise<void> {
  const [unknown] = await listUnknownPlanCodes(tx, app.id, codes)
  if (unknown === undefined) return
  throw invalidField(`plan_codes.${codes.indexOf(unknown)}`, `the app has no plan "${unknown}"`)
}

function codeTaken(code: string): AppError {
  return new AppError('promotion_code_taken', `code: another promotion of this app has the code "${code}"`, {
    field: 'code',
  })
}
