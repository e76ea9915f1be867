import { Option } from 'commander'
import type { App } from '#apps/store.ts'
import type { PlanWithPrices } from '#plans/store.ts'
import { requireId } from '#shared/ids.ts'
import { required } from './ask.ts'
import { countedUnit, moneyCell, priceCell, stateCell } from './cells.ts'
import type { Commands, Declaration, Texts } from './declaration.ts'
import { listOfApp, type OfApp } from './list.ts'
import { oneOf } from './one-of.ts'
import { readJsonFile } from './read-file.ts'
import { banner, performAs, type Session } from './session.ts'
import { UsageError } from './usage-error.ts'

/** `plan …` and `price …`: what an app sells. */
export const commands: Commands = {
  'plan list [app]': listOfApp({
    description: "an app's plans, newest first, with the prices on sale",
    options: [['--status <status>', 'active or archived', oneOf('active', 'archived')]],
    examples: ['plan list 1', 'plan list 1 --status archived --json'],
    async rows({ ctx, app, options }: OfApp<Texts<'status'>>) {
      const { listPlansOf } = await import('#plans/list-plans.ts')
      const { presentPlanOnSale } = await import('#plans/present.ts')
      const plans = await listPlansOf(ctx, app.id, options)
      return plans.map(presentPlanOnSale)
    },
    columns: () => [
      ['id', (row) => row.id],
      ['code', (row) => row.code],
      ['name', (row) => row.name],
      ['status', (row) => stateCell(row.status)],
      ['prices', (row) => row.prices.map(priceCell)],
    ],
    none: () => 'No plans yet: billing-cli plan create',
  }),
  'plan show [app] [plan_id]': {
    description: 'one plan with all its prices',
    examples: ['plan show 1 plan_3'],
    async run(session, [named, planId]) {
      const { getPlan } = await import('#plans/store.ts')
      const app = await session.pickApp(named)
      await printPlan(session, app, await getPlan(session.ctx.db, app.id, await planNumber(planId)))
    },
  },
  'plan create [app]': {
    description: 'publish a plan with its first prices',
    options: [
      fileOption('code', 'name', 'description', 'price'),
      ['--code <code>', 'your stable label: a-z, 0-9, _ and -'],
      ['--name <name>', 'what customers read'],
      ['--description <text>', 'what customers read below it'],
      ['--price <amount:currency:unit[:count]>', 'a price, such as 99000:VND:month; may be repeated', collect, []],
    ],
    examples: [
      'plan create 1 --code pro --name Pro --price 99000:VND:month --price 990000:VND:year',
      'plan create 1 --file plan.json',
    ],
    async change(session, [named], options: CreateOptions) {
      const { createPlan } = await import('#plans/create-plan.ts')
      const app = await session.pickApp(named)
      await printPlan(session, app, await performAs(session, createPlan, await createInput(options), { app }))
    },
  },
  'plan update [app] [plan_id]': {
    description: "change a plan's name or description",
    options: [
      fileOption('name', 'description'),
      ['--name <name>', 'what customers read'],
      ['--description <text>', 'what customers read below it; an empty text clears it'],
    ],
    examples: ['plan update 1 plan_3 --name "Pro 2026"'],
    async change(session, [named, planId], { file, name, description }: UpdateOptions) {
      if (file === undefined && name === undefined && description === undefined)
        throw new UsageError('nothing to change: give --name, --description or --file')
      const given = {
        ...(name === undefined ? {} : { name }),
        ...(description === undefined ? {} : { description: description || null }),
      }
      await changePlan(session, named, planId, file === undefined ? given : readJsonFile(file))
    },
  },
  'plan archive [app] [plan_id]': planStatus('archive', 'take a plan off sale; running subscriptions keep renewing'),
  'plan restore [app] [plan_id]': planStatus('restore', 'put a plan back on sale'),
  'price add [app] [plan_id]': {
    description: 'put one more price on sale',
    options: [fileOption('price'), ['--price <amount:currency:unit[:count]>', 'such as 99000:VND:month', onePrice]],
    examples: ['price add 1 plan_3 --file price.json', 'price add 1 plan_3 --price 129000:VND:month'],
    async change(session, [named, planId], options: Texts<'file' | 'price'>) {
      const { addPrice } = await import('#plans/add-price.ts')
      const app = await session.pickApp(named)
      const id = await planNumber(planId)
      const input =
        options.file === undefined
          ? parsePrice(await required(options.price, '--file or --price', 'Price (amount:currency:unit[:count]):'))
          : readJsonFile(options.file)
      await printPlan(session, app, await performAs(session, addPrice, input, { app, planId: id }))
    },
  },
  'price archive [app] [plan_id] [price_id]': priceStatus('archive', 'take a price off sale'),
  'price restore [app] [plan_id] [price_id]': priceStatus('restore', 'put a price back on sale'),
}

type UpdateOptions = Texts<'file' | 'name' | 'description'>

type CreateOptions = UpdateOptions & Texts<'code'> & { readonly price: readonly string[] }

async function createInput(options: CreateOptions): Promise<unknown> {
  if (options.file !== undefined) return readJsonFile(options.file)
  const code = await required(options.code, '--code')
  const name = await required(options.name, '--name')
  const prices =
    options.price.length > 0
      ? options.price
      : [await required(undefined, '--price', 'Price (amount:currency:unit[:count]):')]
  return { code, name, description: options.description, prices: prices.map(parsePrice) }
}

/** `99000:VND:month:3` as the API's price. */
function parsePrice(text: string): object {
  const [amount = '', currency = '', unit = '', count, ...rest] = text.split(':')
  const areNumbers = /^\d+$/.test(amount) && /^\d+$/.test(count ?? '1')
  if (!areNumbers || currency === '' || unit === '' || rest.length > 0)
    throw new UsageError(`--price must be amount:currency:unit[:count], such as 99000:VND:month, not ${text}`)
  const isLifetime = unit === 'lifetime' && count === undefined
  return {
    amount: Number(amount),
    currency,
    interval_unit: unit,
    ...(isLifetime ? {} : { interval_count: Number(count ?? 1) }),
  }
}

function planStatus(name: 'archive' | 'restore', description: string): Declaration {
  return {
    description,
    examples: [`plan ${name} 1 plan_3`],
    async change(session, [named, planId]) {
      await changePlan(session, named, planId, { status: statusAfter(name) })
    },
  }
}

async function changePlan(
  session: Session,
  named: string | undefined,
  planId: string | undefined,
  input: unknown,
): Promise<void> {
  const { updatePlan } = await import('#plans/update-plan.ts')
  const app = await session.pickApp(named)
  const changed = await performAs(session, updatePlan, input, { app, planId: await planNumber(planId) })
  await printPlan(session, app, changed)
}

function priceStatus(name: 'archive' | 'restore', description: string): Declaration {
  return {
    description,
    examples: [`price ${name} 1 plan_3 price_7`],
    async change(session, [named, planText, priceText]) {
      const { updatePrice } = await import('#plans/update-price.ts')
      const app = await session.pickApp(named)
      const planId = await planNumber(planText)
      const priceId = requireId('price', await required(priceText, '<price_id>'))
      const input = { status: statusAfter(name) }
      await printPlan(session, app, await performAs(session, updatePrice, input, { app, planId, priceId }))
    },
  }
}

function statusAfter(name: 'archive' | 'restore'): 'archived' | 'active' {
  return name === 'archive' ? 'archived' : 'active'
}

/** The whole body in a file. Options beside it would be ignored, so they are refused. */
function fileOption(...others: string[]): Option {
  return new Option('--file <file>', "JSON as the API's body; - for standard input").conflicts(others)
}

/** Commander would keep the last of several. */
function onePrice(value: string, earlier: string | undefined): string {
  if (earlier !== undefined) throw new UsageError('price add puts one price on sale: give --price once')
  return value
}

function collect(value: string, earlier: readonly string[]): string[] {
  return [...earlier, value]
}

async function planNumber(planId: string | undefined): Promise<number> {
  return requireId('plan', await required(planId, '<plan_id>'))
}

async function printPlan({ out }: Session, app: App, plan: PlanWithPrices): Promise<void> {
  const { presentPlan } = await import('#plans/present.ts')
  out.result(presentPlan(plan), () => {
    out.line(banner(app))
    out.line(`plan_${plan.id} ${plan.code}: ${plan.name} (${plan.status})`)
    const rows = plan.prices.map((price) => [
      `price_${price.id}`,
      moneyCell(price.amount, price.currency),
      price.intervalUnit === 'lifetime' ? 'lifetime' : countedUnit(price.intervalCount, price.intervalUnit),
      trialWords(price),
      stateCell(price.status),
    ])
    out.table({ head: ['id', 'amount', 'interval', 'trial', 'status'], rows, none: 'no prices' })
  })
}

/** `free for 7 days`, `₫1,000 for 1 month`; null if the price has no trial. */
function trialWords(price: PlanWithPrices['prices'][number]): string | null {
  const { trialAmount, trialIntervalCount: count, trialIntervalUnit: unit, currency } = price
  if (trialAmount === null) return null
  return `${trialAmount === 0 ? 'free' : moneyCell(trialAmount, currency)} for ${countedUnit(count, unit)}`
}
