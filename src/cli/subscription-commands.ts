import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import type { SubscriptionView } from '#subscriptions/store.ts'
import { required } from './ask.ts'
import { minuteCell, priceCell, stateCell } from './cells.ts'
import { changeWithNote, type Consent } from './change.ts'
import { NOTE, YES, type Commands } from './declaration.ts'
import { durationOf } from './duration-of.ts'
import { oneOf } from './one-of.ts'
import { listOfApp, type OfApp } from './list.ts'
import { readTextFile } from './read-file.ts'
import { banner, fail, performAs, printOf, type Session } from './session.ts'
import { UsageError } from './usage-error.ts'

/** `subscription …`: who has access, and until when. */
export const commands: Commands = {
  'subscription list [app]': listOfApp({
    description: "an app's subscriptions, the soonest to end first",
    options: [
      ['--status <status>', 'active or expired', oneOf('active', 'expired')],
      ['--expiring-within <duration>', 'only active ones that end within, such as 7d'],
    ],
    examples: [
      'subscription list 1',
      'subscription list 1 --expiring-within 7d',
      'subscription list 1 --status expired --json',
    ],
    async page({ ctx, app, options }: OfApp<{ status?: 'active' | 'expired'; expiringWithin?: string }>, query) {
      const { listSubscriptions } = await import('#subscriptions/list-subscriptions.ts')
      const { status = null, expiringWithin: within } = options
      const withinMs = within === undefined ? null : durationOf(within, '--expiring-within')
      return listSubscriptions(ctx, app, { status, withinMs }, query)
    },
    async columns({ ctx, app }) {
      const prices = await pricesOf(ctx, app)
      return [
        ['external_ref', (row) => row.external_ref],
        ['plan', (row) => row.plan_ref],
        ['price', (row) => prices.get(row.price_id)],
        ['status', (row) => stateCell(row.status)],
        ['ends (UTC)', (row) => minuteCell(row.current_period_end) ?? 'lifetime'],
        ['trial', (row) => row.in_trial],
        ['customer', (row) => row.customer_id],
      ]
    },
    none: () => 'no subscriptions',
    optional: ['price', 'trial', 'customer'],
  }),
  'subscription show [app] [external_ref]': {
    description: 'one subscription',
    examples: ['subscription show 1 user-42'],
    async run(session, [named, ref]) {
      const { subscriptionOf } = await import('#subscriptions/list-subscriptions.ts')
      const app = await session.pickApp(named)
      await print(session, app, await subscriptionOf(session.ctx, app, await required(ref, '<external_ref>')))
    },
  },
  'subscription switch-plan [app] [external_ref] [price_id]': {
    description: 'move to another price at the next renewal; the current period stays',
    examples: ['subscription switch-plan 1 user-42 price_7'],
    async change(session, [named, ref, priceId]) {
      const { switchPlan } = await import('#subscriptions/switch-plan.ts')
      const app = await session.pickApp(named)
      const externalRef = await required(ref, '<external_ref>')
      const input = { price_id: await required(priceId, '<price_id>') }
      await print(session, app, await performAs(session, switchPlan, input, { app, externalRef }))
    },
  },
  'subscription attach-customer [app] [external_ref] [customer_id]': {
    description: 'attach the customer who receives the reminders',
    examples: ['subscription attach-customer 1 user-42 cus_5'],
    async change(session, [named, ref, customerId]) {
      const { attachCustomer } = await import('#subscriptions/attach-customer.ts')
      const app = await session.pickApp(named)
      const externalRef = await required(ref, '<external_ref>')
      const input = { customer_id: await required(customerId, '<customer_id>') }
      await print(session, app, await performAs(session, attachCustomer, input, { app, externalRef, endUser: null }))
    },
  },
  'subscription end [app] [external_ref]': {
    description: 'end a subscription now, even a lifetime one, after a refund, a dispute or a mistake',
    options: [NOTE, YES],
    examples: ['subscription end 1 user-42 --note "refunded: bought by mistake"'],
    async change(session, [named, ref], options: Consent) {
      const { endSubscription } = await import('#subscriptions/end-subscription.ts')
      const app = await session.pickApp(named)
      const externalRef = await required(ref, '<external_ref>')
      const question = `End the subscription of ${externalRef} in ${banner(app)}?`
      const ended = await changeWithNote(session, options, question, (target, note) =>
        performAs(target, endSubscription, { note }, { app, externalRef }),
      )
      await print(session, app, ended)
    },
  },
  'subscription reminders [app] [external_ref] [on_or_off]': {
    description: 'stop the reminders of a subscription, or resume them after an opt-out',
    examples: ['subscription reminders 1 user-42 off'],
    async change(session, [named, ref, onOrOff]) {
      const { out } = session
      const { setReminders } = await import('#renewals/opt-out.ts')
      const app = await session.pickApp(named)
      const externalRef = await required(ref, '<external_ref>')
      const state = await required(onOrOff, '<on_or_off>')
      if (state !== 'on' && state !== 'off') throw new UsageError('<on_or_off> must be on or off')
      const changed = await performAs(session, setReminders, { reminders: state }, { app, externalRef })
      out.result({ external_ref: externalRef, reminders: state, changed }, () => {
        out.line(`${banner(app)}: reminders of ${externalRef} are ${state}${changed ? '' : ', as they were'}`)
      })
    },
  },
  'subscription import [app] [file]': {
    description: 'import subscriptions sold elsewhere, from CSV; end users who already have one are skipped',
    options: [['--dry-run', 'only show what each line would do']],
    examples: ['subscription import 1 ./subscriptions.csv --dry-run', 'subscription import 1 ./subscriptions.csv'],
    async run({ ctx, out, caller, pickApp }, [named, file], { dryRun = false }: { dryRun?: boolean }) {
      const { importSubscriptions } = await import('#subscriptions/import-subscriptions.ts')
      const app = await pickApp(named)
      const csv = readTextFile(await required(file, '<file>'))
      const onLine = (done: number, of: number) => {
        if (done % 100 === 0) out.progress(`${done} of ${of} lines`)
      }
      const report = await importSubscriptions(ctx, caller, app, csv, { dryRun, onLine })
      out.result(report, () => {
        out.line(banner(app))
        const rows = report.lines.map((line) => [line.line, line.external_ref, line.result, line.reason])
        out.table({ head: ['line', 'external_ref', 'result', 'reason'], rows, none: 'the file has no lines' })
      })
      if (report.refused > 0) await fail('invalid_request', `${report.refused} refused`)
    },
  },
}

/** The prices of an app's plans, as lists show them, by their public ids. */
async function pricesOf(ctx: Context, app: App): Promise<Map<string, string>> {
  const { listPlansOf } = await import('#plans/list-plans.ts')
  const { presentPlan } = await import('#plans/present.ts')
  const plans = await listPlansOf(ctx, app.id, {})
  return new Map(plans.flatMap((plan) => presentPlan(plan).prices.map(({ id, ...price }) => [id, priceCell(price)])))
}

async function print({ ctx, out }: Session, app: App, view: SubscriptionView): Promise<void> {
  const { presentSubscription } = await import('#subscriptions/present.ts')
  const { appNow } = await import('#apps/app-time.ts')
  const external_ref = view.subscription.externalRef
  const shown = { external_ref, ...presentSubscription(view, appNow(app, ctx.clock.now())) }
  const end = shown.current_period_end ?? 'lifetime'
  printOf(out, app, { ...shown, status: stateCell(shown.status), current_period_end: end }, shown)
}
