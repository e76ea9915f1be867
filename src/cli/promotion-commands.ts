import type { z } from 'zod'
import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import type { PromotionOutput } from '#promotions/present.ts'
import type { ShownPromotion } from '#promotions/store.ts'
import { required } from './ask.ts'
import { minuteCell, moneyCell, stateCell } from './cells.ts'
import type { Commands, Declaration, Flags, Texts } from './declaration.ts'
import { listOfApp, type OfApp } from './list.ts'
import { numberOf } from './number-of.ts'
import { performAs, printOf, type Session } from './session.ts'
import { UsageError } from './usage-error.ts'

/** `promotion …`: codes that take something off a payment. */
export const commands: Commands = {
  'promotion create [app]': {
    description: 'make a code that takes a percentage or an amount off a payment',
    options: [
      ['--code <code>', '3 to 40 of A-Z, a-z, 0-9, _ and -; kept in upper case'],
      ['--percent <n>', 'what it takes off, from 1 to 100'],
      ['--amount <amount:currency>', 'what it takes off instead, in the smallest unit: 30000:VND'],
      ['--plans <codes>', 'only for these plans, separated by commas'],
      ['--every-period', 'renewals get it, too; otherwise the first payment alone'],
      ['--valid-until <time>', "YYYY-MM-DD HH:MM:SS in UTC, in the app's own time"],
      ['--max-uses <n>', 'how many payments may use it'],
      ['--many-per-user', 'an end user may use it more than once'],
      ['--on-page', 'payers may type it on the hosted page'],
    ],
    examples: [
      'promotion create 1 --code TET2027 --percent 20 --plans pro --valid-until "2027-02-28 16:59:59" --max-uses 500',
      'promotion create 1 --code WELCOME --amount 30000:VND --on-page',
    ],
    async change(session, [named], options: CreateOptions) {
      const { createPromotion } = await import('#promotions/create-promotion.ts')
      const app = await session.pickApp(named)
      await print(session, app, await performAs(session, createPromotion, await createInput(options), { app }))
    },
  },
  'promotion list [app]': listOfApp({
    description: "an app's promotions, newest first, with their uses",
    examples: ['promotion list 1', 'promotion list 1 --json'],
    async page({ ctx, app }: OfApp, query) {
      const { listPromotions } = await import('#promotions/list-promotions.ts')
      const { presentPromotion } = await import('#promotions/present.ts')
      const { presentPage } = await import('#http/list-page.ts')
      return presentPage(await listPromotions(ctx, app.id, query), presentPromotion)
    },
    columns: () => [
      ['id', (row) => row.id],
      ['code', (row) => row.code],
      ['off', offCell],
      ['periods', (row) => (row.every_period ? 'every' : 'first')],
      ['plans', (row) => row.plan_codes?.join(', ') ?? 'all'],
      ['uses', usesCell],
      ['until (UTC)', (row) => minuteCell(row.valid_until)],
      ['status', (row) => stateCell(row.status)],
    ],
    none: () => 'No promotions yet: billing-cli promotion create',
    optional: ['plans', 'periods', 'id'],
    right: ['uses'],
  }),
  'promotion show [app] [promotion]': {
    description: 'one promotion, by its id or its code',
    examples: ['promotion show 1 TET2027', 'promotion show 1 promo_3 --json'],
    async run(session, [named, promotion]) {
      const app = await session.pickApp(named)
      await print(session, app, await findNamed(session.ctx, app, promotion))
    },
  },
  'promotion archive [app] [promotion]': statusCommand(
    'archive',
    'end a promotion; open checkouts, and renewals that have it, keep it',
  ),
  'promotion restore [app] [promotion]': statusCommand('restore', 'let a promotion be used again'),
}

type Shown = z.input<typeof PromotionOutput>

type CreateOptions = Texts<'code' | 'percent' | 'amount' | 'plans' | 'validUntil' | 'maxUses'> &
  Flags<'everyPeriod' | 'manyPerUser' | 'onPage'>

/** The API's body. */
async function createInput(options: CreateOptions): Promise<object> {
  const { percent, plans, validUntil, maxUses, everyPeriod, manyPerUser, onPage } = options
  if (percent !== undefined && options.amount !== undefined)
    throw new UsageError('--percent and --amount exclude each other')
  const code = await required(options.code, '--code')
  const off =
    percent === undefined
      ? amountOf(await required(options.amount, '--percent or --amount', 'Amount (amount:currency):'))
      : { percent: numberOf(percent, '--percent') }
  return {
    code,
    ...off,
    ...(plans === undefined ? {} : { plan_codes: plans.split(',').map((plan) => plan.trim()) }),
    ...(validUntil === undefined ? {} : { valid_until: validUntil }),
    ...(maxUses === undefined ? {} : { max_uses: numberOf(maxUses, '--max-uses') }),
    every_period: everyPeriod === true,
    once_per_user: manyPerUser !== true,
    on_page: onPage === true,
  }
}

/** `30000:VND` */
function amountOf(text: string): { amount: number; currency: string } {
  const [amount = '', currency = '', ...rest] = text.split(':')
  if (!/^\d+$/.test(amount) || currency === '' || rest.length > 0)
    throw new UsageError(`--amount must be amount:currency, such as 30000:VND, not ${text}`)
  return { amount: Number(amount), currency }
}

function statusCommand(name: 'archive' | 'restore', description: string): Declaration {
  return {
    description,
    examples: [`promotion ${name} 1 TET2027`],
    async change(session, [named, promotion]) {
      const { updatePromotion } = await import('#promotions/update-promotion.ts')
      const app = await session.pickApp(named)
      const { id: promotionId } = await findNamed(session.ctx, app, promotion)
      const input = { status: name === 'archive' ? 'archived' : 'active' }
      await print(session, app, await performAs(session, updatePromotion, input, { app, promotionId }))
    },
  }
}

/** The app's promotion with this id or code. Throws `not_found`. */
async function findNamed(ctx: Context, app: App, named: string | undefined): Promise<ShownPromotion> {
  const { findShownPromotion, getPromotion } = await import('#promotions/store.ts')
  const { parseId } = await import('#shared/ids.ts')
  const { found } = await import('#shared/errors.ts')
  const text = await required(named, '<promotion>', 'Promotion (its id or its code):')
  const id = parseId('promo', text)
  if (id !== null) return getPromotion(ctx.db, app.id, id)
  return found(await findShownPromotion(ctx.db, app.id, text.toUpperCase()), 'promotion')
}

async function print({ out }: Session, app: App, promotion: ShownPromotion): Promise<void> {
  const { presentPromotion } = await import('#promotions/present.ts')
  const shown = presentPromotion(promotion)
  const fields = {
    id: shown.id,
    code: shown.code,
    off: offCell(shown),
    plans: shown.plan_codes?.join(', ') ?? 'all',
    periods: shown.every_period ? 'every period' : 'the first payment',
    'valid until (UTC)': shown.valid_until,
    uses: usesCell(shown),
    'per end user': shown.once_per_user ? 'once' : 'any number of times',
    'typed on the page': shown.on_page,
    status: stateCell(shown.status),
    'created (UTC)': shown.created_at,
  }
  printOf(out, app, fields, shown)
}

/** `20 %`, `₫30,000` */
function offCell({ percent, amount, currency }: Shown): string {
  return percent === null ? moneyCell(amount, currency ?? '') : `${percent} %`
}

/** `3 of 500` */
function usesCell({ uses, max_uses: most }: Shown): string {
  return most === null ? String(uses) : `${uses} of ${most}`
}
