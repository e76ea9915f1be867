import { lastMonths } from '#reports/last-months.ts'
import type { Stats } from '#reports/stats.ts'
import { counted } from '#shared/counted.ts'
import { formatBars } from './bar-chart.ts'
import type { Commands } from './declaration.ts'
import type { Output } from './output.ts'
import { banner } from './session.ts'
import { terminalWidth } from './terminal-width.ts'
import { UsageError } from './usage-error.ts'

/** `stats`: how business is going. */
export const commands: Commands = {
  'stats [app]': {
    options: [['--test', 'of all sandbox apps']],
    examples: ['stats', 'stats 1', 'stats --test --json'],
    refuse([named], { test }: { test?: boolean }) {
      if (named !== undefined && test) throw new UsageError('--test is for all apps together, without <app>')
    },
    async run({ ctx, out, app: pick }, [named], { test }: { test?: boolean }) {
      const { gatherStats } = await import('#reports/stats.ts')
      const { englishMoney } = await import('#shared/money.ts')
      const app = named === undefined ? null : await pick(named)
      const found = await gatherStats(ctx, { app, ...(test ? { isTest: true } : {}) })
      out.result(found, () => {
        const apps = counted(found.app_ids.length, `${found.mode === 'test' ? 'sandbox' : 'live'} app`)
        out.line(app ? banner(app) : `${found.mode === 'test' ? '[TEST]' : '[LIVE]'} ${apps}`)
        show(out, found, englishMoney)
      })
    },
  },
}

type Words = (amount: number | bigint, currency: string) => string

function show(out: Output, stats: Stats, money: Words): void {
  const { subscriptions: subs, renewals, deliveries } = stats
  const sums = (list: Stats['unearned']) =>
    list.length === 0 ? '0' : list.map(({ amount, currency }) => money(amount, currency)).join(', ')
  out.fields({
    active: `${subs.active} (${subs.in_trial} in trial, ${subs.lifetime} lifetime)`,
    'expiring in 7 days': subs.expiring_in_7_days,
    'expiring in 30 days': subs.expiring_in_30_days,
    expired: `${subs.expired} (${subs.in_grace} in grace period, ${subs.lapsed} lapsed)`,
    renewed: renewalWords(renewals),
    'deferred revenue': sums(stats.unearned),
    'unapplied: needs review': unappliedWords(sums(stats.unapplied), stats.unknown_payments),
    surplus: sums(stats.surplus),
    webhooks: `${deliveries.delivered} delivered, ${deliveries.pending} pending, ${deliveries.failed} failed, ${deliveries.not_configured} not configured`,
  })
  for (const { currency } of stats.revenue) showCash(out, stats, currency, money)
  if (stats.revenue.length === 0) out.block('no money was received yet')
}

function unappliedWords(sums: string, unknown: number): string {
  return unknown === 0 ? sums : `${sums}, and ${counted(unknown, 'payment')} of unknown amount`
}

function renewalWords({ days, ended, renewed, rate }: Stats['renewals']): string {
  if (rate === null) return `no period ended in the last ${days} days`
  return `${(rate * 100).toFixed(1)} % (${renewed} of the ${ended} periods that ended in ${days} days)`
}

/** One line for each month, including months without money in between. */
function showCash(out: Output, stats: Stats, currency: string, money: Words): void {
  const months = lastMonths(stats.cash.filter((month) => month.currency === currency))
  const bars = months.map(({ month, payments, received, refunded }) => {
    const back = refunded === 0n ? '' : `, ${money(refunded, currency)} refunded`
    const text = payments === 0 && refunded === 0n ? '-' : `${money(received, currency)} from ${payments}${back}`
    return { label: month, value: Number(received), text }
  })
  out.block(`${currency} received by month (UTC), and from how many payments\n${formatBars(bars, terminalWidth())}`)
}
