import type { Command } from 'commander'
import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import type { SubscriptionView } from '#subscriptions/present.ts'
import { required } from './ask.ts'
import { minuteCell, priceCell, stateCell } from './cells.ts'
import { inChange, noteFor, withDryRun } from './change.ts'
import { withExamples } from './examples.ts'
import { oneOf } from './one-of.ts'
import { gatherRows, readLimit, withPages, type PageOptions } from './pages.ts'
import { banner, inSession, performAs, type Session } from './session.ts'
import { registerImport } from './transfer-commands.ts'
import { UsageError } from './usage-error.ts'

/** `subscription …`: who has access, and until when. */
export function registerSubscriptionCommands(program: Command): void {
  const subscription = program.command('subscription').description('who has access, and until when')
  registerReads(subscription)
  registerChanges(subscription)
  registerReminders(subscription)
  registerImport(subscription)
}

/** A hundred years: a date that far ahead still fits the database. */
const MAX_WITHIN_MS = 36_500 * 86_400_000

interface ListOptions extends PageOptions {
  readonly limit: string
  readonly status?: 'active' | 'expired'
  readonly expiringWithin?: string
}

function registerReads(subscription: Command): void {
  const list = subscription
    .command('list [app]')
    .description("an app's subscriptions, the soonest to end first")
    .option('--status <status>', 'active or expired', oneOf('active', 'expired'))
    .option('--expiring-within <duration>', 'only active ones that end within, such as 7d')
    .action(async (named: string | undefined, options: ListOptions, command: Command) => {
      const limit = readLimit(options.limit)
      await inSession(command, async ({ ctx, out, app: pick }) => {
        const [{ listSubscriptions }, { parseDuration }] = await Promise.all([
          import('#subscriptions/list-subscriptions.ts'),
          import('#shared/time.ts'),
        ])
        const app = await pick(named)
        const withinMs = options.expiringWithin === undefined ? null : parseDuration(options.expiringWithin)
        if (options.expiringWithin !== undefined && (withinMs === null || withinMs > MAX_WITHIN_MS))
          throw new UsageError('--expiring-within must be such as 36h or 7d, and at most 36500d')
        const filter = { status: options.status ?? null, withinMs }
        const rows = await gatherRows(out, limit, options, (page) => listSubscriptions(ctx, app, filter, page))
        const found = rows.map((row) => ({ app_id: app.id, sandbox: app.isSandbox, ...row }))
        const prices = await pricesOf(ctx, app)
        out.result(found, () => {
          out.line(banner(app))
          const cells = found.map((row) => [
            row.external_ref,
            row.plan_ref,
            prices.get(row.price_id),
            stateCell(row.status),
            minuteCell(row.current_period_end) ?? 'lifetime',
            row.in_trial,
            row.customer_id,
          ])
          out.table({
            head: ['external_ref', 'plan', 'price', 'status', 'ends (UTC)', 'trial', 'customer'],
            rows: cells,
            none: 'no subscriptions',
            optional: ['price', 'trial', 'customer'],
          })
        })
      })
    })
  withPages(list)
  withExamples(
    list,
    'subscription list 1',
    'subscription list 1 --expiring-within 7d',
    'subscription list 1 --status expired --json',
  )
  const show = subscription
    .command('show [app] [external_ref]')
    .description('one subscription')
    .action(async (named: string | undefined, ref: string | undefined, _options: object, command: Command) => {
      await inSession(command, async (session) => {
        const { subscriptionOf } = await import('#subscriptions/list-subscriptions.ts')
        const app = await session.app(named)
        await print(session, app, await subscriptionOf(session.ctx, app, await required(ref, '<external_ref>')))
      })
    })
  withExamples(show, 'subscription show 1 user-42')
}

/** The prices of an app's plans, as lists show them, by their public ids. */
async function pricesOf(ctx: Context, app: App): Promise<Map<string, string>> {
  const [{ listPlansOf }, { presentPlan }] = await Promise.all([
    import('#plans/list-plans.ts'),
    import('#plans/present.ts'),
  ])
  const plans = await listPlansOf(ctx, app.id, {})
  return new Map(
    plans.flatMap((plan) => presentPlan(plan, { all: true }).prices.map(({ id, ...price }) => [id, priceCell(price)])),
  )
}

function registerChanges(subscription: Command): void {
  const change = subscription
    .command('switch-plan [app] [external_ref] [price_id]')
    .description('move to another price at the next renewal; the current period stays')
    .action(
      async (
        named: string | undefined,
        ref: string | undefined,
        priceId: string | undefined,
        _options: object,
        command: Command,
      ) => {
        await inChange(command, async (session) => {
          const { switchPlan } = await import('#subscriptions/switch-plan.ts')
          const app = await session.app(named)
          const externalRef = await required(ref, '<external_ref>')
          const input = { price_id: await required(priceId, '<price_id>') }
          await print(session, app, await performAs(session, switchPlan, input, { app, externalRef }))
        })
      },
    )
  withDryRun(change)
  withExamples(change, 'subscription switch-plan 1 user-42 price_7')
  const attach = subscription
    .command('attach-customer [app] [external_ref] [customer_id]')
    .description('attach the customer who receives the reminders')
    .action(
      async (
        named: string | undefined,
        ref: string | undefined,
        customerId: string | undefined,
        _options: object,
        command: Command,
      ) => {
        await inChange(command, async (session) => {
          const { attachCustomer } = await import('#subscriptions/attach-customer.ts')
          const app = await session.app(named)
          const externalRef = await required(ref, '<external_ref>')
          const input = { customer_id: await required(customerId, '<customer_id>') }
          await print(
            session,
            app,
            await performAs(session, attachCustomer, input, { app, externalRef, endUser: null }),
          )
        })
      },
    )
  withDryRun(attach)
  withExamples(attach, 'subscription attach-customer 1 user-42 cus_5')
  const end = subscription
    .command('end [app] [external_ref]')
    .description('end a subscription now, even a lifetime one, after a refund, a dispute or a mistake')
    .option('--note <text>', 'why; kept in the audit log')
    .action(
      async (named: string | undefined, ref: string | undefined, options: { note?: string }, command: Command) => {
        await inChange(command, async (session) => {
          const { endSubscription } = await import('#subscriptions/end-subscription.ts')
          const app = await session.app(named)
          const externalRef = await required(ref, '<external_ref>')
          const change = (target: Session, note: string) =>
            performAs(target, endSubscription, { note }, { app, externalRef })
          await print(session, app, await change(session, await noteFor(session, options.note, change)))
        })
      },
    )
  withDryRun(end)
  withExamples(end, 'subscription end 1 user-42 --note "refunded: bought by mistake"')
}

function registerReminders(subscription: Command): void {
  const reminders = subscription
    .command('reminders [app] [external_ref] [on_or_off]')
    .description('stop the reminders of a subscription, or resume them after an opt-out')
    .action(
      async (
        named: string | undefined,
        ref: string | undefined,
        onOrOff: string | undefined,
        _options: object,
        command: Command,
      ) => {
        await inChange(command, async (session) => {
          const { out, app: pick } = session
          const { setReminders } = await import('#renewals/opt-out.ts')
          const app = await pick(named)
          const externalRef = await required(ref, '<external_ref>')
          const state = await required(onOrOff, '<on_or_off>')
          if (state !== 'on' && state !== 'off') throw new UsageError('<on_or_off> must be on or off')
          const changed = await performAs(session, setReminders, { reminders: state }, { app, externalRef })
          out.result({ external_ref: externalRef, reminders: state, changed }, () => {
            out.line(`reminders of ${externalRef} are ${state}${changed ? '' : ', as they were'}`)
          })
        })
      },
    )
  withDryRun(reminders)
  withExamples(reminders, 'subscription reminders 1 user-42 off')
}

async function print({ ctx, out }: Session, app: App, view: SubscriptionView): Promise<void> {
  const [{ presentSubscription }, { appNow }] = await Promise.all([
    import('#subscriptions/present.ts'),
    import('#apps/app-time.ts'),
  ])
  const shown = {
    external_ref: view.subscription.externalRef,
    ...presentSubscription(view, appNow(app, ctx.clock.now())),
  }
  out.result(shown, () => {
    out.line(banner(app))
    const end = shown.current_period_end ?? 'lifetime'
    out.fields({ ...shown, status: stateCell(shown.status), current_period_end: end })
  })
}
