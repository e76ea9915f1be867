import { expect } from 'chai'
import { describe, it } from 'mocha'
import { getApp } from '#apps/store.ts'
import { chooseMethod } from '#checkout/choose-method.ts'
import { availableMethods } from '#providers/available-methods.ts'
import { isTransferCode } from '#providers/bank-transfer/transfer-code.ts'
import { transferDetails } from '#bank-accounts/transfer-details.ts'
import { findTransaction } from '#transactions/store.ts'
import {
  addBankAccount,
  assignBankAccount,
  disableBankAccount,
  disableMethod,
  enableMethod,
} from '../support/operators.ts'
import { testContext, type TestContext } from '../support/context.ts'
import { aCheckout, anApp, tokenOf, type TestApp, transferred } from '../support/factories.ts'
import { decodeVietQr } from '../bank-accounts/decode-vietqr.ts'

const PAYOS = { clientId: 'client', apiKey: 'key', checksumKey: 'checksum' }
const ORDER = { mode: 'payment', plan_ref: 'book', amount: 99_000, currency: 'VND' }

/** An app that takes bank transfers, with its account. */
async function aShop(ctx: TestContext): Promise<{ shop: TestApp; accountId: number }> {
  const created = await anApp(ctx, { methods: ['bank_transfer'] })
  await enableMethod(ctx, 'linh', created.app, 'payos', PAYOS)
  const account = await addBankAccount(ctx, 'linh', { bank: 'ACB', number: '257678859', holder: 'NGUYEN VAN A' })
  await assignBankAccount(ctx, 'linh', created.app, account.id)
  return { shop: { ...created, app: await getApp(ctx.db, created.app.id) }, accountId: account.id }
}

async function offered(ctx: TestContext, { app }: TestApp, amount = 99_000, currency = 'VND'): Promise<boolean> {
  return (await availableMethods(ctx.db, await getApp(ctx.db, app.id), amount, currency)).includes('bank_transfer')
}

describe('manual bank transfer', () => {
  it('is offered for VND, if PayOS is active and an account is assigned', async () => {
    const ctx = testContext()
    const { shop } = await aShop(ctx)
    expect(await offered(ctx, shop)).to.equal(true)
    expect(await offered(ctx, shop, 9900, 'USD')).to.equal(false)
    expect(await offered(ctx, shop, 1e13)).to.equal(false)
  })

  it('is not offered without PayOS, without an account, or with a disabled one', async () => {
    const ctx = testContext()
    const { shop, accountId } = await aShop(ctx)
    await disableMethod(ctx, 'linh', shop.app, 'payos')
    expect(await offered(ctx, shop)).to.equal(false)
    await enableMethod(ctx, 'linh', shop.app, 'payos', PAYOS)
    await disableBankAccount(ctx, 'linh', accountId)
    expect(await offered(ctx, shop)).to.equal(false)
    const bare = await anApp(ctx, { methods: ['bank_transfer'] })
    await enableMethod(ctx, 'linh', bare.app, 'payos', PAYOS)
    expect(await offered(ctx, bare)).to.equal(false)
  })

  it('leads to the bank page, with a transfer code that the payment keeps', async () => {
    const ctx = testContext()
    const { shop } = await aShop(ctx)
    const checkout = await aCheckout(ctx, shop, ORDER)
    const choices = await Promise.all([1, 2, 3].map(() => chooseMethod(ctx, tokenOf(checkout), 'bank_transfer')))
    for (const { redirectUrl } of choices) expect(redirectUrl).to.equal(`${checkout.checkout_url}/bank`)
    const { transferCode } = (await findTransaction(ctx.db, checkout.transaction_id!))!
    expect(isTransferCode(transferCode!)).to.equal(true)
    await chooseMethod(ctx, tokenOf(checkout), 'bank_transfer')
    expect((await findTransaction(ctx.db, checkout.transaction_id!))!.transferCode).to.equal(transferCode)
  })

  it('shows all that a payer needs, and what is still due after a part came', async () => {
    const ctx = testContext()
    const { shop } = await aShop(ctx)
    const checkout = await aCheckout(ctx, shop, ORDER)
    await chooseMethod(ctx, tokenOf(checkout), 'bank_transfer')
    const payment = (await findTransaction(ctx.db, checkout.transaction_id!))!
    const { qrPayload, ...details } = await transferDetails(ctx, payment)
    expect(details).to.deep.equal({
      bank: 'ACB',
      bankName: 'ACB',
      accountNumber: '257678859',
      accountHolder: 'NGUYEN VAN A',
      amountDue: 99_000,
      amountReceived: 0,
      amount: 99_000,
      transferCode: payment.transferCode,
    })
    const asked = { bin: '970416', number: '257678859', purpose: payment.transferCode }
    expect(decodeVietQr(qrPayload)).to.deep.equal({ ...asked, amount: 99_000 })
    await transferred(ctx, payment.id, 40_000, { reference: 'ACB 1' })
    const rest = await transferDetails(ctx, (await findTransaction(ctx.db, payment.id))!)
    expect(rest).to.include({ amountDue: 59_000, amountReceived: 40_000, transferCode: payment.transferCode })
    expect(decodeVietQr(rest.qrPayload)).to.deep.equal({ ...asked, amount: 59_000 })
  })

  it('shows nothing once the account is disabled', async () => {
    const ctx = testContext()
    const { shop, accountId } = await aShop(ctx)
    const checkout = await aCheckout(ctx, shop, ORDER)
    await chooseMethod(ctx, tokenOf(checkout), 'bank_transfer')
    await disableBankAccount(ctx, 'linh', accountId)
    const payment = (await findTransaction(ctx.db, checkout.transaction_id!))!
    const refused = await transferDetails(ctx, payment).catch((error: unknown) => error)
    expect(refused).to.have.property('code', 'payment_method_unavailable')
  })
})
