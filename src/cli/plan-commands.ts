import { Option, type Command } from 'commander'
import type { App } from '#apps/store.ts'
import type { PlanWithPrices } from '#plans/store.ts'
import { required } from './ask.ts'
import { countedUnit, moneyCell, priceCell, stateCell } from './cells.ts'
import { inChange, withDryRun } from './change.ts'
import { withExamples } from './examples.ts'
import { oneOf } from './one-of.ts'
import { banner, inSession, performAs, type Session } from './session.ts'
import { UsageError } from './usage-error.ts'

/** `plan …` and `price …`: what an app sells. */
export function registerPlanCommands(program: Command): void {
  const plan = program.command('plan').description('what an app sells')
  registerReads(plan)
  registerCreate(plan)
  registerUpdate(plan)
  registerPlanStatus(plan)
  const price = program.command('price').description('the prices of a plan')
  registerPriceAdd(price)
  registerPriceStatus(price)
}

function registerReads(plan: Command): void {
  const list = plan
    .command('list [app]')
    .description("an app's plans, newest first, with the prices on sale")
    .option('--status <status>', 'active or archived', oneOf('active', 'archived'))
    .action(async (named: string | undefined, options: { status?: string }, command: Command) => {
      await inSession(command, async (session) => {
        const [{ listPlansOf }, { presentPlan }] = await Promise.all([
          import('#plans/list-plans.ts'),
          import('#plans/present.ts'),
        ])
        const app = await session.app(named)
        const plans = await listPlansOf(
          session.ctx,
          app.id,
          options.status === undefined ? {} : { status: options.status },
        )
        const shown = plans.map((found) => ({
          ...{ app_id: app.id, sandbox: app.isSandbox },
          ...presentPlan(found, { all: false }),
        }))
        session.out.result(shown, () => {
          session.out.line(banner(app))
          session.out.table({
            head: ['id', 'code', 'name', 'status', 'prices'],
            rows: shown.map((row) => [row.id, row.code, row.name, stateCell(row.status), row.prices.map(priceCell)]),
            none: 'No plans yet: billing-cli plan create',
          })
        })
      })
    })
  withExamples(list, 'plan list 1', 'plan list 1 --status archived --json')
  const show = plan
    .command('show [app] [plan_id]')
    .description('one plan with all its prices')
    .action(async (named: string | undefined, planId: string | undefined, _options: object, command: Command) => {
      await inSession(command, async (session) => {
        const { planOf } = await import('#plans/list-plans.ts')
        const app = await session.app(named)
        await printPlan(session, app, await planOf(session.ctx, app.id, await planNumber(planId)))
      })
    })
  withExamples(show, 'plan show 1 plan_3')
}

interface CreateOptions {
  readonly file?: string
  readonly code?: string
  readonly name?: string
  readonly description?: string
  readonly price: readonly string[]
}

function registerCreate(plan: Command): void {
  const create = plan
    .command('create [app]')
    .description('publish a plan with its first prices')
    .addOption(fileOption('code', 'name', 'description', 'price'))
    .option('--code <code>', 'your stable label: a-z, 0-9, _ and -')
    .option('--name <name>', 'what customers read')
    .option('--description <text>', 'what customers read below it')
    .option('--price <amount:currency:unit[:count]>', 'a price, such as 99000:VND:month; may be repeated', collect, [])
    .action(async (named: string | undefined, options: CreateOptions, command: Command) => {
      await inChange(command, async (session) => {
        const { createPlan } = await import('#plans/create-plan.ts')
        const app = await session.app(named)
        await printPlan(session, app, await performAs(session, createPlan, await createInput(options), { app }))
      })
    })
  withDryRun(create)
  withExamples(
    create,
    'plan create 1 --code pro --name Pro --price 99000:VND:month --price 990000:VND:year',
    'plan create 1 --file plan.json',
  )
}

async function createInput(options: CreateOptions): Promise<unknown> {
  if (options.file !== undefined) return fileInput(options.file)
  const code = await required(options.code, '--code')
  const name = await required(options.name, '--name')
  const prices =
    options.price.length > 0
      ? options.price
      : [await required(undefined, '--price', 'Price (amount:currency:unit[:count]):')]
  const description = options.description === undefined ? {} : { description: options.description }
  return { code, name, ...description, prices: prices.map(parsePrice) }
}

/** `99000:VND:month:3` as the API's price. */
export function parsePrice(text: string): object {
  const [amount = '', currency = '', unit = '', count, ...rest] = text.split(':')
  if (
    !/^\d+$/.test(amount) ||
    currency === '' ||
    unit === '' ||
    rest.length > 0 ||
    (count !== undefined && !/^\d+$/.test(count))
  ) {
    throw new UsageError(`--price must be amount:currency:unit[:count], such as 99000:VND:month, not ${text}`)
  }
  const isLifetime = unit === 'lifetime' && count === undefined
  return {
    amount: Number(amount),
    currency,
    interval_unit: unit,
    ...(isLifetime ? {} : { interval_count: Number(count ?? 1) }),
  }
}

function registerUpdate(plan: Command): void {
  const update = plan
    .command('update [app] [plan_id]')
    .description("change a plan's name or description")
    .addOption(fileOption('name', 'description'))
    .option('--name <name>', 'what customers read')
    .option('--description <text>', 'what customers read below it; an empty text clears it')
    .action(
      async (
        named: string | undefined,
        planId: string | undefined,
        options: { file?: string; name?: string; description?: string },
        command: Command,
      ) => {
        await inChange(command, async (session) => {
          const { file, name, description } = options
          if (file === undefined && name === undefined && description === undefined)
            throw new UsageError('nothing to change: give --name, --description or --file')
          const { updatePlan } = await import('#plans/update-plan.ts')
          const app = await session.app(named)
          const input =
            file === undefined
              ? {
                  ...(name === undefined ? {} : { name }),
                  ...(description === undefined ? {} : { description: description || null }),
                }
              : await fileInput(file)
          await printPlan(
            session,
            app,
            await performAs(session, updatePlan, input, { app, planId: await planNumber(planId) }),
          )
        })
      },
    )
  withDryRun(update)
  withExamples(update, 'plan update 1 plan_3 --name "Pro 2026"')
}

const STATUS = { archive: 'archived', restore: 'active' } as const

function registerPlanStatus(plan: Command): void {
  for (const name of ['archive', 'restore'] as const) {
    const command = plan
      .command(`${name} [app] [plan_id]`)
      .description(
        name === 'archive' ? 'take a plan off sale; running subscriptions keep renewing' : 'put a plan back on sale',
      )
      .action(async (named: string | undefined, planId: string | undefined, _options: object, self: Command) => {
        await inChange(self, async (session) => {
          const { updatePlan } = await import('#plans/update-plan.ts')
          const app = await session.app(named)
          const changed = await performAs(
            session,
            updatePlan,
            { status: STATUS[name] },
            { app, planId: await planNumber(planId) },
          )
          await printPlan(session, app, changed)
        })
      })
    withDryRun(command)
    withExamples(command, `plan ${name} 1 plan_3`)
  }
}

function registerPriceAdd(price: Command): void {
  const add = price
    .command('add [app] [plan_id]')
    .description('put one more price on sale')
    .addOption(fileOption('price'))
    .option('--price <amount:currency:unit[:count]>', 'such as 99000:VND:month')
    .action(
      async (
        named: string | undefined,
        planId: string | undefined,
        options: { file?: string; price?: string },
        command: Command,
      ) => {
        await inChange(command, async (session) => {
          const { addPrice } = await import('#plans/add-price.ts')
          const app = await session.app(named)
          const id = await planNumber(planId)
          const input =
            options.file === undefined
              ? parsePrice(await required(options.price, '--file or --price', 'Price (amount:currency:unit[:count]):'))
              : await fileInput(options.file)
          await printPlan(session, app, await performAs(session, addPrice, input, { app, planId: id }))
        })
      },
    )
  withDryRun(add)
  withExamples(add, 'price add 1 plan_3 --file price.json', 'price add 1 plan_3 --price 129000:VND:month')
}

function registerPriceStatus(price: Command): void {
  for (const name of ['archive', 'restore'] as const) {
    const command = price
      .command(`${name} [app] [plan_id] [price_id]`)
      .description(name === 'archive' ? 'take a price off sale' : 'put a price back on sale')
      .action(
        async (
          named: string | undefined,
          planId: string | undefined,
          priceId: string | undefined,
          _options: object,
          self: Command,
        ) => {
          await inChange(self, async (session) => {
            const [{ updatePrice }, { requireId }] = await Promise.all([
              import('#plans/update-price.ts'),
              import('#shared/ids.ts'),
            ])
            const app = await session.app(named)
            const id = await planNumber(planId)
            const price = requireId('price', await required(priceId, '<price_id>'))
            await printPlan(
              session,
              app,
              await performAs(session, updatePrice, { status: STATUS[name] }, { app, planId: id, priceId: price }),
            )
          })
        },
      )
    withDryRun(command)
    withExamples(command, `price ${name} 1 plan_3 price_7`)
  }
}

/** The whole body in a file. Options beside it would be ignored, so they are refused. */
function fileOption(...others: string[]): Option {
  return new Option('--file <file>', "JSON as the API's body; - for standard input").conflicts(others)
}

function collect(value: string, earlier: readonly string[]): string[] {
  return [...earlier, value]
}

async function fileInput(file: string): Promise<unknown> {
  const { readJsonFile } = await import('./read-file.ts')
  return readJsonFile(file)
}

async function planNumber(planId: string | undefined): Promise<number> {
  const { requireId } = await import('#shared/ids.ts')
  return requireId('plan', await required(planId, '<plan_id>'))
}

async function printPlan({ out }: Session, app: App, plan: PlanWithPrices): Promise<void> {
  const { presentPlan } = await import('#plans/present.ts')
  out.result(presentPlan(plan, { all: true }), () => {
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
