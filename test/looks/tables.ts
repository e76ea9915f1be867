import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { alerts } from '#alerts/store.ts'
import { approvals } from '#approvals/store.ts'
import type { Context } from '#context.ts'
import { operators } from '#operators/store.ts'
import { noteEvent } from '#providers/note-event.ts'
import { onSimulatedTerminal } from '../cli/simulated-terminal.ts'
import { openCli } from '../cli/run-cli.ts'
import { aBusyService, type BusyService } from '../cli/states.ts'
import { startBrowser } from '../pages/browser.ts'
import { realTimeContext } from '../support/context.ts'
import { addBankAccount } from '../support/operators.ts'
import { pageOf, shownOn } from '../support/screen.ts'

const COLUMNS = [80, 140]

/** A picture of what each command shows on a colour terminal: `<command>.<columns>.png`. */
export async function lookAtTables(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const ctx = realTimeContext()
  const made = await aBusyService(ctx)
  await addBankAccount(ctx, 'linh', { bank: 'ACB', number: '257678859', holder: 'NGUYEN VAN A' })
  await noteEvent(ctx, {
    provider: 'card',
    eventId: 'evt_1',
    eventType: 'charge.dispute.created',
    appId: made.shop.app.id,
    transactionId: made.flagged,
    outcome: 'noted',
    note: 'the payer disputes ₫99,000: answer it at Stripe before 2026-12-01',
  })
  await whatOperatorsMeet(ctx, made)
  const { env } = openCli()
  const browser = await startBrowser()
  const page = await browser.newPage({ viewport: { width: 1280, height: 400 } })
  for (const line of commandsOf(made)) {
    for (const columns of COLUMNS) {
      const { raw } = await onSimulatedTerminal(env, line.split(' '), [], columns)
      const lines = await shownOn(columns, raw.replaceAll('\n', '\r\n'))
      const written = lines.findLastIndex(({ text }) => text !== '') + 1
      await page.setContent(pageOf(line, lines.slice(0, written)))
      const name = `${line.replaceAll(/\W+/g, '-').replace(/^-/, '')}.${columns}.png`
      await page.locator('pre').screenshot({ path: join(folder, name) })
    }
  }
  await browser.close()
}

/** An alert, an operator, a refund that waits for a second one, and a promotion. */
async function whatOperatorsMeet(ctx: Context, { reader, flagged }: BusyService): Promise<void> {
  const at = ctx.clock.now()
  const subject = `transaction ${flagged}`
  await ctx.db.insert(alerts, {
    ...{ kind: 'money_waiting', subject, openKey: subject, text: '₫90,000 wait since yesterday: user-1, underpaid' },
    ...{ since: at, openedAt: at, closedAt: null, isAnnounced: true, notifiedAt: at },
  })
  await ctx.db.insert(operators, { name: 'linh', role: 'money', createdAt: at })
  await ctx.db.insert(approvals, {
    ...{ status: 'open', openKey: 'refund', requestedBy: 'linh', requestedAt: at, note: null, seen: '', effects: [] },
    ...{ command: `transaction resolve ${flagged} --action refund`, paymentId: null },
    terms: { of: 'transaction', id: flagged, amount: null, reference: null, note: 'paid twice' },
    ...{
      appId: reader.app.id,
      transactionId: flagged,
      amount: 90_000,
      currency: 'VND',
      decidedBy: null,
      decidedAt: null,
    },
  })
  const code = ['--code', 'TET2027', '--percent', '20', '--max-uses', '500', '--on-page']
  await openCli().json(['promotion', 'create', String(reader.app.id), ...code])
}

function commandsOf({ reader, plan, flagged }: BusyService): string[] {
  const app = reader.app.id
  return [
    ...['app list', `app show ${app}`, `method list ${app}`, 'notification list'],
    ...['bank-account list', 'bank-mail list', 'bank-mail list --unmatched'],
    ...[`plan list ${app}`, `plan show ${app} ${plan}`, `customer list ${app}`, `customer show ${app} cus_1`],
    ...[`subscription list ${app}`, `subscription show ${app} user-1`],
    ...[
      'transaction list',
      `transaction show ${flagged}`,
      'ledger verify',
      'payment list',
      'payment list --unallocated',
      'payment show 3',
    ],
    ...[`transaction resolve ${flagged} --action complete --dry-run`, `app update ${app} --name Books --dry-run`],
    ...['demo --dry-run', 'service install --dry-run', 'transaction --help', 'transaction resolve --help'],
    ...[
      `webhook list ${app}`,
      'webhook show evt_1',
      'reminders plan --days 40',
      'reminders unconfirmed',
      'reminders refused',
    ],
    ...['review', `promotion list ${app}`, 'approval list', 'alert list', 'operator list'],
    ...['audit list', 'stats', `stats ${app}`, 'doctor', `find user-1 --app ${app}`, 'watch --once', '--help'],
  ]
}
