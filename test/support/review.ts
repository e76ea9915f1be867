import { inTransaction } from '#commands/transaction.ts'
import type { Context } from '#context.ts'
import { customers } from '#customers/store.ts'
import { reminders } from '#mails/reminders/store.ts'
import { UNTRIED } from '#mail/mail-columns.ts'
import { insertPayment } from '#payments/store.ts'
import { insertProviderAccount } from '#providers/accounts/store.ts'
import { beginPause, endPause, listPauses } from '#providers/pauses/store.ts'
import { HOUR_MS, addMs } from '#shared/time.ts'
import { subscriptions } from '#subscriptions/store.ts'
import { transactions } from '#transactions/store.ts'
import { aBankMail, anUnconfirmedReceipt, anUnconfirmedReminder, unmatchedMoney } from '../cli/states.ts'
import { anApp, aPlan, partlyPaid, priceId, type TestApp } from './factories.ts'
import { failEvents } from './failed-events.ts'

let references = 0

/** Money of an app that is booked for nothing, and that no mail reports. Returns the payment's id. */
export async function unallocatedMoney(ctx: Context, { app }: TestApp, amount: number): Promise<number> {
  references += 1
  const now = ctx.clock.now()
  const id = await inTransaction(ctx, (tx) =>
    insertPayment(tx, {
      appId: app.id,
      endUserId: null,
      provider: 'payos',
      providerAccountId: null,
      bankAccountId: null,
      reference: `loose-${references}`,
      chargeReference: null,
      amount,
      amountLeft: amount,
      currency: 'VND',
      paidAt: now,
      receivedAt: now,
      closedAt: null,
    }),
  )
  if (id === null) throw new Error('the payment exists')
  return id
}

/** Pauses an account of an app, whose provider has not answered. Returns the account's id. */
export async function aPausedAccount(ctx: Context, { app }: TestApp): Promise<number> {
  const now = ctx.clock.now()
  return inTransaction(ctx, async (tx) => {
    const account = { appId: app.id, method: 'payos', version: 1, credentials: null, createdAt: now, retiredAt: null }
    const providerAccountId = await insertProviderAccount(tx, account)
    const pause = { failures: 3, reason: 'no answer', since: addMs(now, -HOUR_MS), pausedUntil: addMs(now, HOUR_MS) }
    await beginPause(tx, { appId: app.id, provider: 'payos', providerAccountId, ...pause }, now)
    return providerAccountId
  })
}

/** The provider of each paused account answers again. */
export async function endPauses(ctx: Context): Promise<void> {
  for (const { providerAccountId } of await listPauses(ctx.db))
    await inTransaction(ctx, (tx) => endPause(tx, providerAccountId))
}

/** The mail server refuses the address of the app's customer, at two stages of one period. Returns the first reminder's id. */
async function aRefusedAddress(ctx: Context, { app }: TestApp): Promise<number> {
  const { id: subscriptionId, currentPeriodEnd } = (await ctx.db.one(subscriptions, 'WHERE app_id = ?', [app.id]))!
  const refused = {
    ...UNTRIED,
    appId: app.id,
    subscriptionId,
    periodEnd: currentPeriodEnd!,
    status: 'refused',
    claimedAt: ctx.clock.now(),
    failures: 1,
    lastError: '550 no such user',
    refusedTo: 'an@example.com',
  } as const
  const first = await ctx.db.insert(reminders, { ...refused, stage: 1 })
  await ctx.db.insert(reminders, { ...refused, stage: 0 })
  await ctx.db.update(customers, { appId: app.id }, { email: 'an@example.com' })
  return first
}

/** One case of each kind, on one app. Returns the app. */
export async function oneOfEachKind(ctx: Context): Promise<TestApp> {
  const app = await anApp(ctx, { webhookUrl: 'http://127.0.0.1:9/hooks' })
  await partlyPaid(ctx, app, { external_ref: 'user-9', price_id: priceId(await aPlan(ctx, app, { code: 'nine' })) })
  await unallocatedMoney(ctx, app, 70_000)
  await unmatchedMoney(ctx, app, 99_000)
  await aBankMail(ctx, { bank: 'VCB', bankReference: 'x-1', review: 'not_understood' })
  await anUnconfirmedReminder(ctx, app)
  await anUnconfirmedReceipt(ctx, app)
  await failEvents(ctx.db, 'WHERE app_id = ? ORDER BY id LIMIT 1', [app.app.id])
  await aPausedAccount(ctx, app)
  await aRefusedAddress(ctx, app)
  return app
}

/** The flagged transaction of an app. */
export async function flaggedOf(ctx: Context, { app }: TestApp): Promise<number> {
  return (await ctx.db.one(transactions, 'WHERE app_id = ? AND flag_reason IS NOT NULL', [app.id]))!.id
}
