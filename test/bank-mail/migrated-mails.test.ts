import { expect } from 'chai'
import { describe, it } from 'mocha'
import { BankAccountOwners1795200000011 } from '#migrations/1795200000011-bank-account-owners.ts'
import { BankMailReviews1795200000012 } from '#migrations/1795200000012-bank-mail-reviews.ts'
import { EndedAssignments1795200000031 } from '#migrations/1795200000031-ended-assignments.ts'
import { bankAccountAssignments, listAssignments } from '#bank-accounts/store.ts'
import { listBankMails } from '#bank-mail/list-bank-mails.ts'
import { inTransaction } from '#commands/transaction.ts'
import { openMigrator } from '#db/typeorm.ts'
import { addMs, formatTimestamp, HOUR_MS } from '#shared/time.ts'
import { insertProviderEvent } from '#transactions/store.ts'
import { addBankAccount, assignBankAccount } from '../support/operators.ts'
import { aBankMail } from '../cli/states.ts'
import { testContext, type TestContext } from '../support/context.ts'
import { clearTable } from '../support/database.ts'
import { anApp } from '../support/factories.ts'

async function migrate(ctx: TestContext, migration: { up: BankAccountOwners1795200000011['up'] }): Promise<void> {
  const { runner, close } = await openMigrator(ctx.db.targets, [])
  await migration.up(runner).finally(close)
}

describe('bank accounts and mails from versions that did not record owners and reviews', () => {
  it('belong to the apps that the audit log knows to have had them, once each', async () => {
    const ctx = testContext()
    const { app } = await anApp(ctx)
    const accounts = []
    for (const number of ['1', '2'])
      accounts.push(await addBankAccount(ctx, 'tester', { bank: 'ACB', number, holder: 'AN' }))
    for (const account of [...accounts, accounts[0]!]) await assignBankAccount(ctx, 'tester', app, account.id)
    const known = async () =>
      (await listAssignments(ctx.db)).map(({ appId, bankAccountId }) => [appId, bankAccountId]).sort()
    const expected = accounts.map(({ id }) => [app.id, id]).sort()
    expect(await known()).to.deep.equal(expected)
    await clearTable(ctx.db, bankAccountAssignments)
    for (let time = 0; time < 2; time += 1) {
      await migrate(ctx, new BankAccountOwners1795200000011())
      expect(await known()).to.deep.equal(expected)
    }
  })

  it('end, where the audit log knows that the app was given another account', async () => {
    const ctx = testContext()
    const { app } = await anApp(ctx)
    const accounts = []
    for (const number of ['1', '2', '3'])
      accounts.push(await addBankAccount(ctx, 'tester', { bank: 'ACB', number, holder: 'AN' }))
    for (const { id } of accounts) {
      ctx.clock.set(formatTimestamp(addMs(ctx.clock.now(), HOUR_MS)))
      await assignBankAccount(ctx, 'tester', app, id)
      app.bankAccountId = id
    }
    const ends = async () =>
      (await listAssignments(ctx.db))
        .filter(({ appId }) => appId === app.id)
        .map(({ bankAccountId, endedAt }) => [bankAccountId, endedAt])
    const now = ctx.clock.now()
    const expected = accounts.map(({ id }, index) => [id, index < 2 ? addMs(now, (index - 1) * HOUR_MS) : null])
    expect(await ends()).to.deep.equal(expected)
    for (let time = 0; time < 2; time += 1) {
      await ctx.db.update(bankAccountAssignments, { appId: app.id }, { endedAt: null })
      await migrate(ctx, new EndedAssignments1795200000031())
      expect(await ends()).to.deep.equal(expected)
    }
  })

  it('wait if they brought money that is not matched, also to an account’s former address', async () => {
    const ctx = testContext()
    const money = { bank: 'ACB', amount: 1000, bankAccountId: 1 } as const
    const expected = [
      await aBankMail(ctx, { ...money, bankReference: 'A' }),
      await aBankMail(ctx, { ...money, bankReference: 'B', status: 'rejected', reason: 'invalid_recipient' }),
    ]
    await aBankMail(ctx, { ...money, bankReference: 'C', bankAccountId: null })
    await aBankMail(ctx, { ...money, bankReference: 'D', amount: null })
    await aBankMail(ctx, { ...money, bankReference: 'E', matchedAt: ctx.clock.now() })
    await aBankMail(ctx, { ...money, bankReference: 'F', closedAt: ctx.clock.now() })
    await aBankMail(ctx, { ...money, bankReference: 'G', status: 'processed', reason: null })
    await aBankMail(ctx, { ...money, bankReference: 'H' })
    await inTransaction(ctx, (tx) =>
      insertProviderEvent(tx, {
        provider: 'bank_transfer',
        eventId: 'movement ACB H',
        eventType: 'bank_mail.credit',
        appId: null,
        transactionId: null,
        outcome: 'applied',
        note: null,
        receivedAt: tx.now,
      }),
    )
    await migrate(ctx, new BankMailReviews1795200000012())
    const waiting = (await listBankMails(ctx, { unmatched: true })).rows
    expect(waiting.map(({ id }) => id).sort()).to.deep.equal(expected.sort())
  })
})
