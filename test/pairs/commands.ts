import { denyApproval } from '#approvals/deny-approval.ts'
import { closeBankMail } from '#bank-mail/close-bank-mail.ts'
import { matchBankMail } from '#bank-mail/match-bank-mail.ts'
import { receiveMail } from '#bank-mail/receive-mail.ts'
import { applyPromotion } from '#checkout/apply-promotion.ts'
import { chooseMethod } from '#checkout/choose-method.ts'
import { createCheckoutSession } from '#checkout/create-session.ts'
import { openBankPage } from '#checkout/open-bank-page.ts'
import { viewCheckout } from '#checkout/view-checkout.ts'
import { operator, payer, type Caller } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import type { Context } from '#context.ts'
import { updateCustomer } from '#customers/update-customer.ts'
import { closePayment } from '#decisions/close-payment.ts'
import { grantApproval } from '#decisions/grant-approval.ts'
import { movePayment } from '#decisions/move-payment.ts'
import { refundPayment } from '#decisions/refund-payment.ts'
import { resolveTransaction } from '#decisions/resolve-transaction.ts'
import { listClockGroups } from '#apps/clock-groups.ts'
import { Stopped } from '#mails/mail-queue.ts'
import { ReminderRun, reminderQueue } from '#mails/reminders/send-due-reminders.ts'
import { handOver } from '#mails/send-mails.ts'
import { settleReceipt, settleReminder } from '#mails/settle-mail.ts'
import { listPaymentsOf } from '#payments/store.ts'
import { updatePromotion } from '#promotions/update-promotion.ts'
import { expireDue } from '#renewals/expire-due.ts'
import { openRenewal } from '#renewals/open-renewal.ts'
import { optOut, setReminders } from '#renewals/opt-out.ts'
import { attachCustomer } from '#subscriptions/attach-customer.ts'
import { endSubscription } from '#subscriptions/end-subscription.ts'
import { switchPlan } from '#subscriptions/switch-plan.ts'
import { inTransaction } from '#commands/transaction.ts'
import { recordForeignRefund } from '#transactions/record-foreign-refund.ts'
import { AttemptCounter } from '#webhooks/attempt-counter.ts'
import { claimDueEvents } from '#webhooks/claim-due-events.ts'
import { finishAttempts } from '#webhooks/finish-attempts.ts'
import { retryEvent, retryFailed } from '#webhooks/retry-event.ts'
import type { ClaimedEvent } from '#webhooks/claims/store.ts'
import { type ReportedPayment, reportPayment, SERVER } from '../support/factories.ts'
import type { Scene, SceneName } from './scenes.ts'

/** What a command is about: two commands can meet if they share one of these. */
type Subject = 'end user' | 'transaction' | 'payment' | 'event' | 'mail'

/** A command as the product's own functions run it. */
export interface PairCommand {
  readonly scenes: readonly SceneName[]
  readonly about: readonly Subject[]
  /** What it returns is its answer, beside that it succeeded. */
  readonly run: (ctx: Context, scene: Scene) => Promise<unknown>
  /** A queue's sweep: where the answer to COMMIT is lost, it may find its own claim and leave the work to the next sweep. */
  readonly isSweep?: boolean
}

const SOLD: readonly SceneName[] = ['running', 'ended']
const ALL: readonly SceneName[] = ['running', 'ended', 'first']
const LINH = operator('linh')
const URLS = { success_url: 'https://shop.example/ok', cancel_url: 'https://shop.example/no' }
const NOTE = { note: 'a pair' }

const USER = ['end user', 'transaction'] as const
const MONEY = ['end user', 'transaction', 'payment'] as const

export const COMMANDS: Readonly<Record<string, PairCommand>> = {
  'open a checkout': { scenes: ALL, about: USER, run: opening({}) },
  'open a checkout of a year': {
    scenes: ['first'],
    about: USER,
    run: (ctx, scene) => opening({ price_id: scene.prices.year })(ctx, scene),
  },
  'open a checkout with the last use of a promotion': {
    scenes: ['running', 'first'],
    about: USER,
    run: opening({ promotion_code: 'LAST' }),
  },
  'open a checkout of another with the last use of a promotion': {
    scenes: ['first'],
    about: USER,
    run: opening({ promotion_code: 'LAST', external_ref: 'user-2' }),
  },
  'start a free trial': {
    scenes: ['first'],
    about: USER,
    run: (ctx, scene) => opening({ price_id: scene.prices.other })(ctx, scene),
  },
  'open a checkout for a lifetime': {
    scenes: ['first'],
    about: USER,
    run: (ctx, scene) => opening({ price_id: scene.prices.lifetime })(ctx, scene),
  },
  'type a promotion': {
    scenes: ['running', 'first'],
    about: USER,
    run: async (ctx, { open }) => applyPromotion(ctx, await viewCheckout(ctx, open.token), { promotion_code: 'LAST' }),
  },
  'open the bank page': {
    scenes: ['running'],
    about: USER,
    run: async (ctx, { open }) => (await openBankPage(ctx, open.token)).state,
  },
  'pay by the test method': {
    scenes: ['running', 'first'],
    about: MONEY,
    run: (ctx, { open }) => silent(chooseMethod(ctx, open.token, 'test')),
  },
  'pay by a bank transfer': { scenes: ALL, about: MONEY, run: transfer('open', 'FT-OPEN', 99_000) },
  'pay by card': {
    scenes: ['running'],
    about: MONEY,
    run: paying('open', { provider: 'stripe', eventId: 'evt_card', reference: 'pi_card', amount: 99_000 }),
  },
  'pay a part': { scenes: ['running', 'first'], about: MONEY, run: transfer('open', 'FT-SOME', 50_000) },
  'pay the second checkout': { scenes: ['first'], about: MONEY, run: transfer('second', 'FT-SECOND', 990_000) },
  'pay the rest': {
    scenes: ['running'],
    about: MONEY,
    run: (ctx, scene) => pay(ctx, scene.partlyPaid, bank('FT-REST', 9000)),
  },
  'accept a part': { scenes: SOLD, about: MONEY, run: resolving('partlyPaid', { action: 'complete' }) },
  'refund a part': {
    scenes: ['running'],
    about: MONEY,
    run: resolving('partlyPaid', { action: 'refund', reference: 'FT-BACK-1' }),
  },
  'dismiss a flag': { scenes: ['running'], about: MONEY, run: resolving('paidTwice', { action: 'dismiss' }) },
  'refund what was paid twice': {
    scenes: ['running'],
    about: MONEY,
    run: resolving('paidTwice', { action: 'refund', reference: 'FT-BACK-2' }),
  },
  'refund a waiting payment': {
    scenes: ['running'],
    about: MONEY,
    run: async (ctx, { waitingPayment }) =>
      (await refundPayment(ctx, LINH, { payment_id: waitingPayment, reference: 'FT-BACK-3', ...NOTE })).status,
  },
  'move a waiting payment': {
    scenes: ['running', 'first'],
    about: MONEY,
    run: async (ctx, { waitingPayment, open }) =>
      (await movePayment(ctx, LINH, { payment_id: waitingPayment, transaction_id: open.transactionId, ...NOTE }))
        .status,
  },
  'move what was paid twice': {
    scenes: ['running'],
    about: MONEY,
    run: async (ctx, scene) =>
      (
        await movePayment(ctx, LINH, {
          payment_id: await paidTwiceBy(ctx, scene),
          transaction_id: scene.open.transactionId,
          ...NOTE,
        })
      ).status,
  },
  'a refund at the provider is reported': {
    scenes: ['running'],
    about: MONEY,
    run: async (ctx, scene) => {
      const paymentId = await paidTwiceBy(ctx, scene)
      const refund = { reference: 're_1', amount: 60_000, status: 'succeeded' } as const
      await silent(inTransaction(ctx, (tx) => recordForeignRefund(tx, paymentId, refund)))
    },
  },
  'close a waiting payment': {
    scenes: ['running'],
    about: ['payment', 'mail'],
    run: (ctx, { waitingPayment }) =>
      silent(perform(ctx, LINH, closePayment, { payment_id: waitingPayment, ...NOTE }, null)),
  },
  'grant a refund': {
    scenes: ['running'],
    about: ['payment'],
    run: async (ctx, { approval }) =>
      (await grantApproval(ctx, operator('minh'), { approval_id: approval, ...NOTE })).status,
  },
  'deny a refund': {
    scenes: ['running'],
    about: ['payment'],
    run: (ctx, { approval }) => silent(perform(ctx, LINH, denyApproval, { approval_id: approval, ...NOTE }, null)),
  },
  'match a bank mail': {
    scenes: ['running', 'first'],
    about: [...MONEY, 'mail'],
    run: async (ctx, { waitingMail, open }) =>
      (await matchBankMail(ctx, LINH, { id: waitingMail, transactionId: open.transactionId, ...NOTE })).status,
  },
  'close a bank mail': {
    scenes: ['running'],
    about: ['payment', 'mail'],
    run: (ctx, { waitingMail }) => perform(ctx, LINH, closeBankMail, { id: waitingMail, ...NOTE }, null),
  },
  'the mail of a movement comes again': {
    scenes: ['running'],
    about: ['payment', 'mail'],
    run: async (ctx) => (await receiveMail(ctx, aMail(ctx))).status,
  },
  'end the subscription': {
    scenes: ['running'],
    about: USER,
    run: (ctx, scene) => silent(perform(ctx, LINH, endSubscription, NOTE, endUserOf(scene))),
  },
  'switch the plan': {
    scenes: SOLD,
    about: USER,
    run: (ctx, scene) => silent(perform(ctx, SERVER, switchPlan, { price_id: scene.prices.other }, endUserOf(scene))),
  },
  'attach a customer': {
    scenes: SOLD,
    about: USER,
    run: (ctx, scene) =>
      silent(perform(ctx, SERVER, attachCustomer, { customer_id: scene.customer }, endUserOf(scene))),
  },
  'change the customer': {
    scenes: ['ended'],
    about: ['end user', 'mail'],
    run: (ctx, { app, customerId }) =>
      silent(perform(ctx, SERVER, updateCustomer, { email: 'binh@example.com' }, { app, customerId })),
  },
  'archive the promotion': {
    scenes: ['first'],
    about: USER,
    run: (ctx, { app, promotionId }) =>
      silent(perform(ctx, SERVER, updatePromotion, { status: 'archived' }, { app, promotionId })),
  },
  'renew by the link': {
    scenes: SOLD,
    about: MONEY,
    run: async (ctx, { renewalToken }) => (await openRenewal(ctx, renewalToken, { payment_method: 'test' })).kind,
  },
  'stop the reminders by the link': {
    scenes: SOLD,
    about: ['end user', 'mail'],
    run: (ctx, { renewalToken }) => perform(ctx, payer, optOut, undefined, { renewalToken }),
  },
  'stop the reminders': {
    scenes: ['ended'],
    about: ['end user', 'mail'],
    run: (ctx, scene) => perform(ctx, LINH, setReminders, { reminders: 'off' }, endUserOf(scene)),
  },
  'sweep the ended periods': {
    scenes: ['ended'],
    about: USER,
    isSweep: true,
    run: (ctx) => expireDue(ctx),
  },
  'send the due reminders': {
    scenes: ['ended'],
    about: ['end user', 'mail'],
    isSweep: true,
    run: sendReminders,
  },
  'settle a reminder as sent': {
    scenes: SOLD,
    about: ['mail', 'end user'],
    run: (ctx, { reminder }) => perform(ctx, LINH, settleReminder, { outcome: 'sent' }, { mailId: reminder }),
  },
  'settle a receipt as not sent': {
    scenes: ['running'],
    about: ['mail'],
    run: (ctx, { receipt }) => perform(ctx, LINH, settleReceipt, { outcome: 'not_sent' }, { mailId: receipt }),
  },
  'deliver an event': { scenes: ['running'], about: ['event'], isSweep: true, run: delivering(200) },
  'fail to deliver an event': {
    scenes: ['running'],
    about: ['event'],
    isSweep: true,
    run: delivering(500),
  },
  'deliver an event again': {
    scenes: ['running'],
    about: ['event'],
    run: async (ctx, { event }) => (await perform(ctx, LINH, retryEvent, { event_id: event }, {})).deliveryStatus,
  },
  'deliver failed events again': {
    scenes: ['running'],
    about: ['event'],
    run: (ctx, { app }) => retryFailed(ctx, LINH, app),
  },
}

/** The second payment of the transaction that was paid twice. */
async function paidTwiceBy(ctx: Context, { paidTwice }: Scene): Promise<number> {
  return (await listPaymentsOf(ctx.db, paidTwice)).at(-1)?.id ?? 0
}

async function silent(done: Promise<unknown>): Promise<void> {
  await done
}

function endUserOf({ app }: Scene): { app: Scene['app']; externalRef: string; endUser: null } {
  return { app, externalRef: 'user-1', endUser: null }
}

function opening(body: object) {
  return async (ctx: Context, { app, prices }: Scene): Promise<unknown> => {
    const input = { external_ref: 'user-1', mode: 'subscription', price_id: prices.month, ...URLS, ...body }
    const { activated, discount } = await perform(ctx, SERVER, createCheckoutSession, input, { app, endUser: null })
    return { activated, discount }
  }
}

type Money = Pick<ReportedPayment, 'provider' | 'eventId' | 'reference' | 'amount'>

async function pay(ctx: Context, transactionId: number, money: Money): Promise<string> {
  const paidAt = ctx.clock.now()
  return (await reportPayment(ctx, { ...money, transactionId, currency: 'VND', paidAt })).kind
}

function bank(reference: string, amount: number): Money {
  return { provider: 'bank_transfer', eventId: `ACB ${reference}`, reference, amount }
}

function paying(checkout: 'open' | 'second', money: Money) {
  return (ctx: Context, scene: Scene): Promise<string> => pay(ctx, scene[checkout].transactionId, money)
}

function transfer(checkout: 'open' | 'second', reference: string, amount: number) {
  return paying(checkout, bank(reference, amount))
}

function resolving(
  of: 'paidTwice' | 'partlyPaid',
  input: Pick<Parameters<typeof resolveTransaction>[2], 'action' | 'reference'>,
) {
  return async (ctx: Context, scene: Scene, caller: Caller = LINH): Promise<string> =>
    (await resolveTransaction(ctx, caller, { transactionId: scene[of], ...input, ...NOTE })).status
}

/** The bank's mail about the movement that waits, which was posted once more. */
function aMail(ctx: Context): Parameters<typeof receiveMail>[1] {
  const credit = { amount: 99_000, account: '27550951', reference: 'FT1', bookedAt: ctx.clock.now(), codes: [] }
  return {
    envelopeTo: 'bank@pay.example',
    raw: Buffer.alloc(0),
    reading: {
      ...{ bank: 'ACB', trust: 'direct', messageId: null, messageIdHash: null, contentHash: '7'.repeat(64) },
      ...{ to: null, credit, review: null, forwarding: null },
    },
  }
}

/** A sweep of the reminders' job: it claims, hands over, and records what the mail server has accepted. */
async function sendReminders(ctx: Context): Promise<unknown> {
  const counted: string[] = []
  for (const group of await listClockGroups(ctx)) {
    const queue = reminderQueue(ctx, new ReminderRun(), group, 'with retries', new Set())
    const due = []
    for await (const mail of queue.due) due.push(mail)
    if (due.length === 0) continue
    for (const mail of await queue.claim(due)) {
      try {
        await handOver(ctx, queue, mail)
        await queue.recordSent(mail)
        counted.push('sent')
      } catch (error) {
        if (!(error instanceof Stopped)) throw error
        await inTransaction(ctx, (tx) => queue.stop(tx, mail.claim, error))
        counted.push('stopped')
      }
    }
  }
  return counted
}

/** Claims the event, counts the attempt, and records what the app's server answered. */
function delivering(httpStatus: number) {
  return async (ctx: Context, { app, event }: Scene): Promise<unknown> => {
    const claimed: ClaimedEvent[] = []
    for (const found of await claimDueEvents(ctx, [{ id: Number(event.slice(4)), appId: app.id }]))
      if (await new AttemptCounter(ctx).count(found)) claimed.push({ ...found })
    const made = { kind: 'made', startedAt: ctx.clock.now(), durationMs: 5, httpStatus, responseHead: null } as const
    const error = httpStatus === 200 ? null : `http_${httpStatus}`
    return finishAttempts(
      ctx,
      claimed.map((found) => ({ ...made, error, event: found })),
    )
  }
}

/** A pair's name says its scene and its two commands. */
export interface Pair {
  readonly name: string
  readonly scene: SceneName
  readonly commands: readonly [string, string]
}

/** Every two commands, also one and itself, that can meet in a scene. */
export function listPairs(): Pair[] {
  const names = Object.keys(COMMANDS)
  return ALL.flatMap((scene) =>
    names.flatMap((first, index) =>
      names
        .slice(index)
        .filter((second) => canMeet(COMMANDS[first], COMMANDS[second], scene))
        .map((second) => ({ name: `${scene}: ${first} + ${second}`, scene, commands: [first, second] as const })),
    ),
  )
}

function canMeet(first: PairCommand | undefined, second: PairCommand | undefined, scene: SceneName): boolean {
  if (!first?.scenes.includes(scene) || !second?.scenes.includes(scene)) return false
  return first.about.some((subject) => second.about.includes(subject))
}
