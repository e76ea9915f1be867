import type { EndUserView } from '#support/view-end-user.ts'
import { minuteCell, moneyCell, priceCell, receivedCell, stageCell, standingCell, stateCell } from './cells.ts'
import type { Output } from './output.ts'
import { printable } from './printable.ts'
import { markOf } from './session.ts'
import { terminalWidth } from './terminal-width.ts'
import { wrap } from './wrap.ts'

/** One screen about an end user, the next step on the bottom, where the eye is. */
export function printEndUser(out: Output, view: EndUserView): void {
  out.block(`${markOf(view.sandbox)} ${printable(view.app_name)} (app ${view.app_id}): ${printable(view.external_ref)}`)
  out.fields(factsOf(view))
  out.table({
    head: ['transaction', 'opened (UTC)', 'plan', 'amount', 'by', 'status'],
    rows: view.transactions.map((row) => [
      row.transaction_id,
      minuteCell(row.created_at),
      row.plan_ref,
      receivedCell(row),
      row.provider_code,
      standingCell(row.status, row.flag_reason),
    ]),
    optional: ['plan'],
    codes: ['by', 'status'],
  })
  out.table({
    head: ['mail', 'at (UTC)', 'for the end', 'status', 'error'],
    rows: view.mails.map((mail) => [
      stageCell(mail.reminder_day),
      minuteCell(mail.at),
      minuteCell(mail.period_end),
      stateCell(mail.status),
      mail.error,
    ]),
  })
  out.table({
    head: ['receipt', 'at (UTC)', 'transaction', 'of', 'status', 'error'],
    rows: view.receipts.map((receipt) => [
      receipt.receipt_id,
      minuteCell(receipt.at),
      receipt.transaction_id,
      `${moneyCell(receipt.amount, receipt.currency)} ${receipt.kind}`,
      stateCell(receipt.status),
      receipt.error,
    ]),
  })
  // A line of its own, to be copied whole.
  if (view.renewal_link !== null) out.lines(`renewal link:\n${view.renewal_link}`)
  if (view.next_steps.length === 0) out.line('next step: nothing to do')
  printSteps(out, view.next_steps)
}

/** Each with its command on a line of its own, to be copied. */
export function printSteps(out: Output, steps: EndUserView['next_steps']): void {
  for (const { what, command } of steps) {
    out.lines(wrap(`next step: ${printable(what)}`, terminalWidth()))
    out.line(`  ${command}`)
  }
}

function factsOf({ subscription, customer, events, ...view }: EndUserView): Record<string, unknown> {
  const mails = customer && [customer.email, ...customer.cc_emails, ...customer.bcc_emails].join(' ')
  return {
    ...(subscription
      ? {
          subscription: stateCell(subscription.status),
          plan: `${subscription.plan_ref}${subscription.in_trial ? ' (trial)' : ''}`,
          price: subscription.price && priceCell(subscription.price),
          ends: endWords(subscription.current_period_end),
        }
      : { subscription: 'none' }),
    customer: customer && `${customer.id} ${customer.name} (${customer.locale})`,
    email: mails,
    reminders: view.reminders_stopped_at === null ? 'on' : `stopped ${view.reminders_stopped_at} UTC`,
    webhooks: `${events.pending} pending, ${events.failed} failed`,
  }
}

function endWords(end: string | null): string {
  return end === null ? 'lifetime' : `${minuteCell(end) ?? ''} UTC`
}
