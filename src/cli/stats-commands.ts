import { lastMonths } from '#reports/last-months.ts'
import { isMonth } from '#reports/month.ts'
import type { MonthFigures } from '#reports/months.ts'
import type { Amounts } from '#reports/sales/figures.ts'
import type { Stats } from '#reports/stats.ts'
import { counted } from '#shared/counted.ts'
import { formatBars } from './bar-chart.ts'
import type { Commands } from './declaration.ts'
import type { Output } from './output.ts'
import { banner, markOf } from './session.ts'
import { terminalWidth } from './terminal-width.ts'
import { UsageError } from './usage-error.ts'

/** `stats`: how business is going. */
export const commands: Commands = {
  'stats [app]': {
    options: [
      ['--month <month>', 'the month to report, such as 2026-10 (default: this month)'],
      ['--test', 'of all sandbox apps'],
    ],
    examples: ['stats', 'stats 1', 'stats 1 --month 2026-10', 'stats --test --json'],
    refuse([named], { test, month }: { test?: boolean; month?: string }) {
      if (named !== undefined && test) throw new UsageError('--test is for all apps together, without <app>')
      if (month !== undefined && !isMonth(month)) throw new UsageError('--month must be a month such as 2026-10')
    },
    async run({ ctx, out, pickApp }, [named], { test, month }: { test?: boolean; month?: string }) {
      const { gatherStats } = await import('#reports/stats.ts')
      const { englishMoney } = await import('#shared/money.ts')
      const app = named === undefined ? null : await pickApp(named)
      const wanted = { ...(test ? { isTest: true } : {}), ...(month === undefined ? {} : { month }) }
      const found = await gatherStats(ctx, { app, ...wanted })
      out.result(found, () => {
        const apps = counted(found.app_ids.length, `${found.mode === 'test' ? 'sandbox' : 'live'} app`)
        out.line(app ? banner(app) : `${markOf(found.mode === 'test')} ${apps}`)
        show(out, found, englishMoney)
      })
    },
  },
}

type Words = (amount: number | bigint, currency: string) => string

function show(out: Output, stats: Stats, money: Words): void {
  showMonths(out, stats, money)
  showRenewals(out, stats)
  showPresent(out, stats, money)
  for (const { currency } of stats.revenue) showCash(out, stats, currency, money)
  if (stats.revenue.length === 0) out.block('no money was received yet')
}

/** The month beside the one before it and that of last year: a table for each currency, and one of the subscriptions. */
function showMonths(out: Output, stats: Stats, money: Words): void {
  const months = [stats.month, stats.previous_month, stats.same_month_last_year]
  const names = months.map(({ month }) => month)
  for (const currency of currenciesOf(months)) {
    const row = (name: string, of: (month: MonthFigures) => Amounts | undefined): string[] => [
      name,
      ...months.map((month) => money(of(month)?.[currency] ?? 0n, currency)),
    ]
    const parts = (key: 'by_plan' | 'by_method', word: string): string[][] =>
      keysOf(months, key, currency).map((name) => row(`${word} ${name || 'none'}`, (month) => month[key][name]))
    const sums = (['gross', 'discounts', 'refunds', 'net'] as const).map((key) => row(key, (month) => month[key]))
    const rows = [...sums, ...parts('by_plan', 'plan'), ...parts('by_method', 'method')]
    out.table({ head: [currency, ...names], rows, right: names })
  }
  const counts = (['new', 'renewed', 'returned', 'lapsed'] as const).map((key) => [
    key,
    ...months.map((month) => month[key]),
  ])
  out.table({ head: ['subscriptions', ...names], rows: counts, right: names })
}

function currenciesOf(months: readonly MonthFigures[]): string[] {
  return [...new Set(months.flatMap(({ net }) => Object.keys(net)))].sort()
}

function keysOf(months: readonly MonthFigures[], key: 'by_plan' | 'by_method', currency: string): string[] {
  const named = months.flatMap((month) => Object.entries(month[key]).filter(([, amounts]) => currency in amounts))
  return [...new Set(named.map(([name]) => name))].sort()
}

/** As many as fit beside each other in 80 columns. */
const RENEWALS = ['1st renewal', '2nd', '3rd', '4th', '5th', '6th']

function showRenewals(out: Output, { renewal_rate: rates }: Stats): void {
  const heads = RENEWALS.slice(0, Math.max(0, ...rates.map((each) => each.rates.length)))
  const rows = rates.map(({ start_month, size, rates: shares }) => [
    start_month,
    size,
    ...heads.map((_, index) => (index < shares.length ? `${((shares[index] ?? 0) * 100).toFixed(0)} %` : '')),
  ])
  out.table({ head: ['start', 'started', ...heads], rows, right: ['started', ...heads] })
}

function showPresent(out: Output, stats: Stats, money: Words): void {
  const { subscriptions: subs, renewals, deliveries } = stats
  const sums = (list: Stats['unearned']) =>
    list.length === 0 ? '0' : list.map(({ amount, currency }) => money(amount, currency)).join(', ')
  const expected = Object.entries(stats.expected_30_days).map(([currency, amount]) => ({ currency, amount }))
  out.fields({
    active: `${subs.active} (${subs.in_trial} in trial, ${subs.lifetime} lifetime)`,
    'expiring in 7 days': subs.expiring_in_7_days,
    'expiring in 30 days': subs.expiring_in_30_days,
    'expected in 30 days': `${sums(expected)}, if everyone renews who gets a reminder`,
    expired: `${subs.expired} (${subs.in_grace} in grace period, ${subs.lapsed} lapsed)`,
    renewed: renewalWords(renewals),
    'deferred revenue': sums(stats.unearned),
    'unapplied: needs review': unappliedWords(sums(stats.unapplied), stats.unknown_payments),
    surplus: sums(stats.surplus),
    webhooks: `${deliveries.delivered} delivered, ${deliveries.pending} pending, ${deliveries.failed} failed, ${deliveries.not_configured} not configured`,
  })
}

function unappliedWords(sums: string, unknown: number): string {
  return unknown === 0 ? sums : `${sums}, and ${counted(unknown, 'payment')} of unknown amount`
}

function renewalWords({ days, ended, renewed, rate }: Stats['renewals']): string {
  if (rate === null) return `no period ended in the last ${days} days`
  return `${(rate * 100).toFixed(1)} % (${renewed} of the ${ended} periods that ended in ${days} days)`
}

/** One line for each month, including months without money in between. Refunds have a column of their own, so that bars keep their room. */
function showCash(out: Output, stats: Stats, currency: string, money: Words): void {
  const months = lastMonths(stats.cash.filter((month) => month.currency === currency))
  const texts = months.map(({ payments, received, refunded }) => [
    payments === 0 ? '-' : money(received, currency),
    payments === 0 ? '' : String(payments),
    refunded === 0n ? '' : `-${money(refunded, currency)}`,
  ])
  const columns = alignRight(texts)
  const bars = months.map(({ month, received }, index) => ({
    label: month,
    value: Number(received),
    text: columns[index] ?? '',
  }))
  const heading = `${currency} by month (UTC): received, from how many payments, and refunded`
  out.block(`${heading}\n${formatBars(bars, terminalWidth())}`)
}

/** The cells of each row, aligned to the right; columns without any text are left out. */
function alignRight(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padStart(widths[column] ?? 0))
      .filter((_, column) => widths[column] !== 0)
      .join('  '),
  )
}
