import type { Command } from 'commander'
import type { Stats } from '#operations/stats.ts'
import { withExamples } from './examples.ts'
import type { Output } from './output.ts'
import { banner, inSession } from './session.ts'
import { UsageError } from './usage-error.ts'

/** Months of the chart. */
const MOST_MONTHS = 12
const BAR = 24

interface StatsOptions {
  readonly test?: boolean
}

/** `stats`: how the business does. */
export function registerStatsCommands(program: Command): void {
  const stats = program
    .command('stats [app]')
    .description(
      'subscriptions by state, cash in, unearned value, renewal rate, deliveries; of all live apps, or of one',
    )
    .option('--test', 'of all sandbox apps')
    .action(async (named: string | undefined, options: StatsOptions, command: Command) => {
      if (named !== undefined && options.test) throw new UsageError('--test is for all apps together, without <app>')
      await inSession(command, async ({ ctx, out, app: pick }) => {
        const [{ gatherStats }, { formatMoney }] = await Promise.all([
          import('#operations/stats.ts'),
          import('#shared/money.ts'),
        ])
        const app = named === undefined ? null : await pick(named)
        const found = await gatherStats(ctx, { app, ...(options.test ? { isTest: true } : {}) })
        out.result(found, () => {
          const apps = `${found.app_ids.length} ${found.mode === 'test' ? 'sandbox' : 'live'} app(s)`
          out.line(app ? banner(app) : `${found.mode === 'test' ? '[TEST]' : '[LIVE]'} ${apps}`)
          show(out, found, (amount, currency) => formatMoney(amount, currency, 'en'))
        })
      })
    })
  withExamples(stats, 'stats', 'stats 1', 'stats --test --json')
}

type Words = (amount: number, currency: string) => string

function show(out: Output, stats: Stats, money: Words): void {
  const { subscriptions: subs, renewals, deliveries } = stats
  const sums = (list: Stats['unearned']) =>
    list.length === 0 ? '0' : list.map(({ amount, currency }) => money(amount, currency)).join(', ')
  const rows = [
    ['active', `${subs.active} (${subs.in_trial} in trial, ${subs.lifetime} for life)`],
    ['expiring in 7 days', subs.expiring_in_7_days],
    ['expiring in 30 days', subs.expiring_in_30_days],
    ['expired', `${subs.expired} (${subs.in_grace} in the days of grace, ${subs.lapsed} lapsed)`],
    ['renewed', renewalWords(renewals)],
    ['unearned', sums(stats.unearned)],
    ['unapplied: waits for an operator', unappliedWords(sums(stats.unapplied), stats.unknown_payments)],
    ['surplus', sums(stats.surplus)],
    [
      'webhooks',
      `${deliveries.delivered} delivered, ${deliveries.pending} pending, ${deliveries.failed} failed, ${deliveries.not_configured} not configured`,
    ],
  ]
  out.table({ head: ['figure', 'now'], rows, none: '' })
  for (const { currency } of stats.revenue) showCash(out, stats, currency, money)
  if (stats.revenue.length === 0) out.line('no money was received yet')
}

function unappliedWords(sums: string, unknown: number): string {
  return unknown === 0 ? sums : `${sums}, and ${unknown} payment(s) of unknown amount`
}

function renewalWords({ days, ended, renewed, rate }: Stats['renewals']): string {
  if (rate === null) return `no period ended in the last ${days} days`
  return `${(rate * 100).toFixed(1)} % (${renewed} of the ${ended} periods that ended in ${days} days)`
}

/** A month a line, with a bar as long as the month's share of the best. */
function showCash(out: Output, stats: Stats, currency: string, money: Words): void {
  const months = stats.cash.filter((month) => month.currency === currency).slice(-MOST_MONTHS)
  const best = Math.max(...months.map(({ received }) => received), 1)
  const rows = months.map(({ month, payments, received, refunded }) => [
    month,
    '█'.repeat(Math.round((received / best) * BAR)),
    money(received, currency),
    refunded === 0 ? null : money(refunded, currency),
    payments,
  ])
  out.table({ head: ['month', 'cash in', currency, 'refunded', 'payments'], rows, none: '' })
}
