import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import type { Context } from '#context.ts'
import { commitTokens, insertCommitToken } from '#commands/store.ts'
import { insertJobRun, jobRuns } from '#upkeep/job-runs/store.ts'
import { idempotencyKeys } from '#http/store.ts'
import { dailyMails } from '#mails/limits/store.ts'
import { UNTRIED } from '#mail/mail-columns.ts'
import { addMs, DAY_MS } from '#shared/time.ts'
import { deleteOldRows } from '#upkeep/delete-old-rows.ts'
import { getTransactionTimeline } from '#support/transaction-timeline.ts'
import { closeBankMail } from '#bank-mail/close-bank-mail.ts'
import { listBankMails } from '#bank-mail/list-bank-mails.ts'
import { matchBankMail } from '#bank-mail/match-bank-mail.ts'
import { deliveryAttempts } from '#webhooks/attempts/store.ts'
import { aBankShop, type BankShop } from '../bank-mail/bank-shop.ts'
import { bankMail, genuineMail, OUR_MX, receivedBy, signed, TRANSFER } from '../support/bank-mails.ts'
import { requireCleanLedger } from '../support/clean-ledger.ts'
import { testContext } from '../support/context.ts'
import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { receipts } from '#transactions/receipts/store.ts'

const NOTHING = {
  keysDeleted: 0,
  tokensDeleted: 0,
  runsDeleted: 0,
  dailyMailsDeleted: 0,
  mailsDeleted: 0,
  attemptsDeleted: 0,
  receiptsDeleted: 0,
}

describe('rows that are kept for a limited time', () => {
  it('are deleted: idempotency keys after a day, job runs after 30 days', async () => {
    const ctx = testContext()
    const insertKey = (idempotencyKey: string): Promise<unknown> =>
      ctx.db.insert(idempotencyKeys, {
        ...{ appId: 1, pathHash: 'p', idempotencyKey, requestHash: 'r', leaseToken: 'l', leaseUntil: ctx.clock.now() },
        ...{ answerStatus: null, answerBody: null, createdAt: ctx.clock.now() },
      })
    const noteRun = (job: string): Promise<void> =>
      insertJobRun(ctx.db, {
        job,
        daemon: 'host:1',
        startedAt: ctx.clock.now(),
        finishedAt: ctx.clock.now(),
        outcome: 'done',
        summary: { expired: 1 },
      })
    await noteRun('older')
    ctx.clock.advance('29d')
    for (let i = 0; i < 120; i += 1) await insertKey(`old-${i}`)
    ctx.clock.advance('24h')
    await insertKey('new')
    await noteRun('newer')
    expect(await deleteOldRows(ctx)).to.deep.equal(NOTHING)
    ctx.clock.advance('1s')
    expect(await deleteOldRows(ctx)).to.deep.equal({ ...NOTHING, keysDeleted: 120, runsDeleted: 1 })
    const keys = await ctx.db.all(idempotencyKeys, '')
    const runs = await ctx.db.all(jobRuns, '')
    expect([...keys.map(({ idempotencyKey }) => idempotencyKey), ...runs.map(({ job }) => job)]).to.deep.equal([
      'new',
      'newer',
    ])
  })

  it('stay as long by the database’s clock, whatever the clock of the daemon says', async () => {
    const ctx = testContext()
    const tenYearsAhead = { now: () => addMs(ctx.clock.now(), 3650 * DAY_MS), database: ctx.clock }
    await ctx.db.insert(idempotencyKeys, {
      ...{ appId: 1, pathHash: 'p', idempotencyKey: 'k', requestHash: 'r', leaseToken: 'l' },
      ...{ leaseUntil: ctx.clock.now(), answerStatus: null, answerBody: null, createdAt: ctx.clock.now() },
    })
    await noteAttempts(ctx, 1)
    expect(await deleteOldRows({ ...ctx, clock: tenYearsAhead })).to.deep.equal(NOTHING)
  })

  it('are deleted: delivery attempts after 400 days', async () => {
    const ctx = testContext()
    await noteAttempts(ctx, 120)
    ctx.clock.advance('400d')
    await noteAttempts(ctx, 1)
    expect(await deleteOldRows(ctx)).to.deep.equal(NOTHING)
    ctx.clock.advance('1s')
    expect(await deleteOldRows(ctx)).to.deep.equal({ ...NOTHING, attemptsDeleted: 120 })
    expect(await ctx.db.count(deliveryAttempts, '')).to.equal(1)
  })

  it('are deleted after attempts that a wrong clock dated in the future', async () => {
    const ctx = testContext()
    const tenYearsAhead = { now: () => addMs(ctx.clock.now(), 3650 * DAY_MS), database: ctx.clock }
    await noteAttempts({ ...ctx, clock: tenYearsAhead }, 60)
    await noteAttempts(ctx, 120)
    ctx.clock.advance('401d')
    expect(await deleteOldRows(ctx)).to.deep.equal({ ...NOTHING, attemptsDeleted: 120 })
  })

  it('are deleted: daily counts of mails after 30 days', async () => {
    const ctx = testContext()
    for (const day of ['2026-01-29', '2026-01-30', '2026-01-31'])
      await ctx.db.insert(dailyMails, { appId: 1, day, mails: 5 })
    // 30 days before 2026-03-01 is 2026-01-30.
    expect(await deleteOldRows(ctx)).to.deep.equal({ ...NOTHING, dailyMailsDeleted: 1 })
    const left = await ctx.db.all(dailyMails, 'ORDER BY day')
    expect(left.map(({ day }) => day)).to.deep.equal(['2026-01-30', '2026-01-31'])
  })

  it('are deleted: commit tokens after a day', async () => {
    const ctx = testContext()
    await insertCommitToken(ctx.db, 'old', ctx.clock.now())
    ctx.clock.advance('24h')
    await insertCommitToken(ctx.db, 'new', ctx.clock.now())
    expect(await deleteOldRows(ctx)).to.deep.equal(NOTHING)
    ctx.clock.advance('1s')
    expect(await deleteOldRows(ctx)).to.deep.equal({ ...NOTHING, tokensDeleted: 1 })
    const left = await ctx.db.all(commitTokens, 'WHERE 1 = 1', [])
    expect(left.map(({ token }) => token)).to.deep.equal(['new'])
  })

  it('are deleted: sent and dropped receipts after 400 days, and no other receipts', async () => {
    const ctx = testContext()
    const states = ['sent', 'dropped', 'due', 'claimed', 'failed'] as const
    for (const [index, status] of states.entries())
      await ctx.db.insert(receipts, {
        ...{ ...UNTRIED, appId: 1, transactionId: index + 1, kind: 'received', amount: 1, total: 1, status },
        ...{ retryAt: ctx.clock.now(), createdAt: ctx.clock.now() },
      })
    ctx.clock.advance('400d')
    expect(await deleteOldRows(ctx)).to.deep.equal(NOTHING)
    ctx.clock.advance('1s')
    expect(await deleteOldRows(ctx)).to.deep.equal({ ...NOTHING, receiptsDeleted: 2 })
    const left = await ctx.db.all(receipts, 'ORDER BY id')
    expect(left.map(({ status }) => status)).to.deep.equal(['due', 'claimed', 'failed'])
  })

  it('are not deleted by work that is already stopped', async () => {
    const ctx = testContext()
    await noteAttempts(ctx, 1)
    ctx.clock.advance('401d')
    expect(await deleteOldRows(ctx, { signal: AbortSignal.abort() })).to.deep.equal(NOTHING)
  })
})

describe('rows that are kept permanently', () => {
  let shop: BankShop

  afterEach(() => shop.service.stop())

  it('are those of money: a bank reference is booked once, unmatched money stays; mails without money are deleted after 90 days', async () => {
    shop = await aBankShop()
    const { ctx } = shop.service
    const [booked, later] = [await shop.pay(), await shop.pay({ amount: 70_000, externalRef: 'user-2' })]
    const money = { ...TRANSFER, movement: 900_000_001, content: booked.transferCode! }
    expect((await shop.relay(await genuineMail('ACB', money))).body).to.deep.equal({ status: 'processed' })
    const stray = { ...TRANSFER, movement: 900_000_002, amount: 70_000 }
    await shop.relay(await genuineMail('ACB', stray))
    await shop.relay(await genuineMail('ACB', { ...stray, movement: 900_000_003 }))
    await shop.relay('Subject: x\r\n\r\nx')
    await shop.relay(await receivedBy(OUR_MX, bankMail('ACB', TRANSFER)))
    const odd = bankMail('ACB', TRANSFER, {}, 'a new kind of notice')
    await shop.relay(await receivedBy(OUR_MX, await signed(odd, 'acb.com.vn')))
    const timeline = await getTransactionTimeline(ctx, booked.id)

    ctx.clock.advance('90d')
    const { tokensDeleted } = await deleteOldRows(ctx)
    expect(tokensDeleted).to.be.greaterThan(0)
    expect(await deleteOldRows(ctx)).to.deep.equal(NOTHING)
    ctx.clock.advance('1s')
    expect(await deleteOldRows(ctx)).to.deep.equal({ ...NOTHING, mailsDeleted: 2 })
    ctx.clock.advance('3650d')
    expect(await deleteOldRows(ctx)).to.deep.equal(NOTHING)

    expect(await getTransactionTimeline(ctx, booked.id)).to.deep.equal(timeline)
    expect((await shop.relay(await genuineMail('ACB', money))).body).to.deep.equal({ status: 'duplicate' })
    expect((await shop.transaction(booked.id)).amountReceived).to.equal(TRANSFER.amount)
    const [notUnderstood, closed, unmatched] = (await listBankMails(ctx, { unmatched: true })).rows
    for (const { id } of [notUnderstood!, closed!])
      await perform(ctx, operator('linh'), closeBankMail, { id, note: 'not for us' }, null)
    expect(await deleteOldRows(ctx), 'what was closed and says no amount').to.deep.equal({
      ...NOTHING,
      mailsDeleted: 1,
    })
    const match = { id: unmatched!.id, transactionId: later.id, note: 'ten years later' }
    expect(await matchBankMail(ctx, operator('linh'), match)).to.deep.include({ status: 'processed' })
    await requireCleanLedger(ctx, 'ten years later')
  })
})

async function noteAttempts({ db, clock }: Pick<Context, 'db' | 'clock'>, count: number): Promise<void> {
  const made = { eventId: 1, startedAt: clock.now(), durationMs: 12, httpStatus: 200, error: null, responseHead: 'ok' }
  const rows = Array.from({ length: count }, (_, index) => ({ ...made, attempt: index + 1 }))
  await db.insertAll(deliveryAttempts, rows)
}
