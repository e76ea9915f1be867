import type { Fit } from '#bank-mail/fits.ts'
import { counted } from '#shared/counted.ts'
import { englishMoney } from '#shared/money.ts'
import { shellWord } from '#shared/shell-word.ts'
import { parseAppTime, type AppTime } from '#shared/time.ts'
import type { EndUser } from './end-user.ts'
import type { UnallocatedRow } from './store.ts'

/** A suggestion for the operator: a sentence, and the command that does it or shows more. */
export interface NextStep {
  readonly what: string
  readonly command: string
}

/** What the steps depend on beside the view; times are the app's own. */
interface Standing {
  /** Money of the end user that is booked for nothing and waits, such as that of a refund that failed. */
  readonly unallocated: readonly UnallocatedRow[]
  readonly now: AppTime
  /** From when the renewal link asks for the next period, as the mails about its end do; null if it never ends. */
  readonly renewsFrom: AppTime | null
}

/** What to do about an end user, the most urgent first; empty if nothing needs to be done. */
export function nextSteps(view: EndUser, standing: Standing): NextStep[] {
  return [
    ...moneySteps(view, standing),
    ...mailSteps(view),
    ...receiptSteps(view),
    ...eventSteps(view),
    ...renewalSteps(view, standing),
  ]
}

function moneySteps(
  { transactions, unmatched }: Pick<EndUser, 'transactions' | 'unmatched'>,
  { unallocated }: Pick<Standing, 'unallocated'>,
): NextStep[] {
  const flagged = transactions.filter((row) => row.flagged)
  const fitting = new Set(unmatched.map(({ transaction_id: id }) => id))
  const waiting = transactions.find(
    (row) => !row.flagged && row.transfer_code !== null && row.status === 'pending' && !fitting.has(row.transaction_id),
  )
  const open = transactions.find((row) => row.link !== null && row.transfer_code === null)
  const steps = [
    ...unmatched.map(matchStep),
    ...flagged.map((row) => ({
      what: `transaction ${row.transaction_id} needs review: ${row.flag_reason ?? ''}`,
      command: `billing-cli transaction resolve ${row.transaction_id}`,
    })),
    ...unallocated.map(({ paymentId, amount, currency }) => ({
      what: `payment ${paymentId} has ${englishMoney(amount, currency)} that is booked for nothing: refund or move it`,
      command: `billing-cli payment show ${paymentId}`,
    })),
  ]
  if (waiting)
    steps.push({
      what: `transaction ${waiting.transaction_id} waits for a transfer with the code ${waiting.transfer_code ?? ''}; check whether it arrived without the code`,
      command: 'billing-cli bank-mail list --unmatched',
    })
  if (open)
    steps.push({
      what: `transaction ${open.transaction_id} may still be paid`,
      command: `billing-cli open ${open.transaction_id}`,
    })
  return steps
}

/** The step for unmatched money: booking it for the transaction that it fits. */
export function matchStep({ what, command }: Fit): NextStep {
  return { what, command: `billing-cli ${command}` }
}

function mailSteps(view: EndUser): NextStep[] {
  const { app_id: app, external_ref: ref, subscription, customer, mails } = view
  if (!subscription?.current_period_end) return []
  const user = `${app} ${shellWord(ref)}`
  if (!subscription.customer_id)
    return [
      {
        what: 'no customer is attached, so no reminder is sent',
        command: `billing-cli subscription attach-customer ${user} <customer_id>`,
      },
    ]
  const current = mails.filter(({ period_end }) => period_end === subscription.current_period_end)
  const refused = current.find(({ status }) => status === 'refused')
  const unconfirmed = current.find(({ status }) => status === 'unconfirmed')
  const steps: NextStep[] = []
  if (refused)
    steps.push({
      what: `the mail server refuses ${customer?.email ?? 'the address'}: ask for another one`,
      command: 'billing-cli reminders refused',
    })
  if (unconfirmed)
    steps.push({
      what: `reminder ${unconfirmed.reminder_id} may or may not have been sent: check the mail server's log`,
      command: `billing-cli reminders settle ${unconfirmed.reminder_id} --sent`,
    })
  if (view.reminders_stopped_at !== null)
    steps.push({
      what: 'the reminders are stopped; resume them only if the customer asks for it',
      command: `billing-cli subscription reminders ${user} on`,
    })
  return steps
}

function receiptSteps({ receipts }: Pick<EndUser, 'receipts'>): NextStep[] {
  return receipts
    .filter(({ status }) => status === 'unconfirmed')
    .map(({ receipt_id: id }) => ({
      what: `receipt ${id} may or may not have been sent: check the mail server's log`,
      command: `billing-cli receipts settle ${id} --sent`,
    }))
}

function eventSteps({ events, app_id: app }: Pick<EndUser, 'events' | 'app_id'>): NextStep[] {
  if (events.last_failed === null) return []
  const command =
    events.failed === 1
      ? `billing-cli webhook retry ${events.last_failed}`
      : `billing-cli webhook retry --failed ${app}`
  return [{ what: `${counted(events.failed, 'event')} about this end user not delivered`, command }]
}

function renewalSteps(
  { subscription, renewal_link: link, app_id: app, external_ref: ref }: EndUser,
  { now, renewsFrom }: Standing,
): NextStep[] {
  const end = subscription?.current_period_end ? parseAppTime(subscription.current_period_end) : null
  if (!end || !link || !renewsFrom || now < renewsFrom) return []
  return [
    {
      what: `${end > now ? 'the subscription ends soon' : 'the subscription has ended'}: give the renewal link`,
      command: `billing-cli open ${shellWord(ref)} --app ${app}`,
    },
  ]
}
