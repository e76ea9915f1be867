import { rehearsing } from '#context.ts'
import { confirmed, DeclinedError } from './ask.ts'
import type { Commands, Flags } from './declaration.ts'
import { performAs, type Session } from './session.ts'
import { UsageError } from './usage-error.ts'

type DemoOptions = Flags<'remove' | 'yes' | 'dryRun'>

/** `demo`: creates and removes an app with sample data. */
export const commands: Commands = {
  demo: {
    options: [
      ['--remove', 'remove it and all of its rows; the audit log stays'],
      ['--yes', 'do not ask before removing'],
      ['--dry-run', 'only show what would be made or removed'],
    ],
    examples: ['demo', 'demo --remove --dry-run', 'demo --remove --yes'],
    refuse(_args, { yes, remove: isRemoval }: DemoOptions) {
      if (yes === true && isRemoval !== true) throw new UsageError('--yes belongs to --remove')
    },
    async run(session, _args, options: DemoOptions) {
      await (options.remove ? remove(session, options) : make(session, options))
    },
  },
}

async function make({ ctx, out, caller }: Session, { dryRun }: DemoOptions): Promise<void> {
  const { demoSize, makeDemo, refuseSecondDemo } = await import('#demo/make-demo.ts')
  await refuseSecondDemo(ctx)
  if (dryRun) {
    const size = demoSize()
    out.result({ dry_run: true, ...size }, () => out.line(`would make [TEST] Demo: ${contentsOf(size)}`))
    return
  }
  const made = await makeDemo(ctx, caller, (done, total) => out.progress(`${done} of ${total} steps of the year`))
  out.result(made, () => {
    out.line(`[TEST] Demo (app ${made.app_id}): ${contentsOf(made)}`)
    out.line(`api_key     ${made.api_key}`)
    out.line(`api_secret  ${made.api_secret ?? ''}`)
    out.hint('The secret is not shown again.')
    out.hint(`Look around: billing-cli stats ${made.app_id}, billing-cli subscription list ${made.app_id}`)
    out.hint('Remove it with: billing-cli demo --remove')
  })
}

function contentsOf(size: { plans: number; customers: number; payments: number; days: number }): string {
  return `${size.plans} plans, ${size.customers} customers, ${size.payments} payments in ${size.days} days`
}

async function remove(session: Session, { yes, dryRun }: DemoOptions): Promise<void> {
  const { ctx, out } = session
  const { findDemo } = await import('#demo/make-demo.ts')
  const { removeDemo } = await import('#demo/remove-demo.ts')
  const app = await findDemo(ctx)
  if (!app) throw new UsageError('there is no demo to remove')
  const planned = await performAs({ ...session, ctx: rehearsing(ctx) }, removeDemo, undefined, { app })
  const rows = Object.values(planned.rows).reduce((sum, count) => sum + count, 0)
  if (!dryRun && !(await confirmed(yes, `Remove the demo, app ${app.id}, and its ${rows} rows for good?`)))
    throw new DeclinedError()
  const removed = dryRun ? planned : await performAs(session, removeDemo, undefined, { app })
  out.result({ ...(dryRun ? { dry_run: true } : {}), ...removed }, () => {
    const tables = Object.entries(removed.rows).filter(([, count]) => count > 0)
    out.line(dryRun ? `would remove the demo, app ${app.id}` : `the demo, app ${app.id}, is removed`)
    out.table({ head: ['table', 'rows'], rows: tables, none: 'no rows' })
  })
}
