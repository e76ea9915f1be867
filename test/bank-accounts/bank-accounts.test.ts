import { expect } from 'chai'
import { describe, it } from 'mocha'
import { getApp } from '#apps/store.ts'
import { listAuditEntries } from '#commands/store.ts'
import { listBankAccounts } from '#bank-accounts/store.ts'
import { presentBankAccount } from '#bank-accounts/present-bank-account.ts'
import { addBankAccount, assignBankAccount, disableBankAccount } from '../support/operators.ts'
import { testContext } from '../support/context.ts'
import { anApp } from '../support/factories.ts'

const ACCOUNT = { bank: 'vietcombank', number: '1017595600', holder: 'NGUYEN VAN A' }

describe('bank accounts', () => {
  it('are added by short code, BIN or name of the bank, with a forward code of ten digits', async () => {
    const ctx = testContext({ BILLING_RELAY_ADDRESS: 'bank+{code}@pay.example' })
    const account = await addBankAccount(ctx, 'linh', { ...ACCOUNT, number: ' 1017 5956-00 ' })
    expect(account).to.deep.include({ bank: 'VCB', bin: '970436', number: '1017595600', holder: 'NGUYEN VAN A' })
    expect(account.forwardCode).to.match(/^\d{10}$/)
    expect(presentBankAccount(account, ctx.config)).to.deep.equal({
      bank_account_id: account.id,
      bank: 'VCB',
      bank_name: 'Vietcombank',
      account_number: '1017595600',
      account_holder: 'NGUYEN VAN A',
      forward_code: account.forwardCode,
      mailbox: null,
      forward_address: `bank+${account.forwardCode}@pay.example`,
      disabled: false,
    })
  })

  it('have no forward address if none is configured', async () => {
    const ctx = testContext()
    const account = await addBankAccount(ctx, 'linh', ACCOUNT)
    expect(presentBankAccount(account, ctx.config).forward_address).to.equal(null)
  })

  const REFUSED: Record<string, { input: object; field: string }> = {
    'a bank of no list': { input: { ...ACCOUNT, bank: 'Gringotts' }, field: 'bank' },
    'a number of 20 digits': { input: { ...ACCOUNT, number: '1'.repeat(20) }, field: 'number' },
    'a number with other marks': { input: { ...ACCOUNT, number: '12#4' }, field: 'number' },
    'no number': { input: { ...ACCOUNT, number: '' }, field: 'number' },
    'no holder': { input: { ...ACCOUNT, holder: ' ' }, field: 'holder' },
    'a field that is none': { input: { ...ACCOUNT, iban: 'x' }, field: 'iban' },
  }
  for (const [what, { input, field }] of Object.entries(REFUSED)) {
    it(`are not added with ${what}`, async () => {
      const error = await addBankAccount(testContext(), 'linh', input).catch((thrown: unknown) => thrown)
      expect(error).to.include({ code: 'invalid_request', field })
    })
  }

  it('are assigned to apps, and not once they are disabled', async () => {
    const ctx = testContext()
    const { app } = await anApp(ctx)
    const account = await addBankAccount(ctx, 'linh', ACCOUNT)
    await assignBankAccount(ctx, 'linh', app, account.id)
    expect((await getApp(ctx.db, app.id)).bankAccountId).to.equal(account.id)
    const disabled = await disableBankAccount(ctx, 'linh', account.id)
    expect(disabled.disabledAt).to.be.instanceOf(Date)
    const again = await assignBankAccount(ctx, 'linh', app, account.id).catch((error: unknown) => error)
    expect(again).to.have.property('code', 'invalid_request')
  })

  it('are not there under an id that none has', async () => {
    const ctx = testContext()
    const { app } = await anApp(ctx)
    for (const attempt of [disableBankAccount(ctx, 'linh', 999_999), assignBankAccount(ctx, 'linh', app, 999_999)]) {
      expect(await attempt.catch((error: unknown) => error)).to.have.property('code', 'not_found')
    }
  })

  it('are all listed, disabled ones too, and every change is in the audit log', async () => {
    const ctx = testContext()
    const { app } = await anApp(ctx)
    const [first, second] = [await addBankAccount(ctx, 'linh', ACCOUNT), await addBankAccount(ctx, 'linh', ACCOUNT)]
    await assignBankAccount(ctx, 'linh', app, second.id)
    await disableBankAccount(ctx, 'linh', first.id)
    await disableBankAccount(ctx, 'linh', first.id)
    expect((await listBankAccounts(ctx.db)).map(({ id }) => id)).to.deep.equal([first.id, second.id])
    const entries = await listAuditEntries(ctx.db, { limit: 4 })
    expect(entries.map(({ action }) => action)).to.deep.equal([
      'bank-account.disable',
      'bank-account.assign',
      'bank-account.add',
      'bank-account.add',
    ])
    const logged = JSON.stringify(entries)
    for (const { forwardCode } of [first, second]) expect(logged).not.to.contain(forwardCode)
  })
})
