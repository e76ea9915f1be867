import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { updateAppRow } from '#apps/store.ts'
import { inTransaction } from '#commands/transaction.ts'
import { perform } from '#commands/perform.ts'
import { createOwnCustomer } from '#customers/create-own-customer.ts'
import type { Customer } from '#customers/store.ts'
import { sendDueReceipts } from '#mails/receipts/send-due-receipts.ts'
import { sendDueReminders } from '#mails/reminders/send-due-reminders.ts'
import { aCheckout, aCustomer, SERVER, tokenOf } from '../support/factories.ts'
import { changeApp } from '../support/operators.ts'
import { chooseMethod } from '#checkout/choose-method.ts'
import { aScene, type Scene } from '../renewals/scene.ts'

const LURE = 'claim at evil.com'

describe('the name in a mail', () => {
  let scene: Scene

  beforeEach(async () => {
    scene = await aScene()
    await changeApp(scene.ctx, 'tester', scene.seller.app, { receipts: true })
  })
  afterEach(() => scene.stop())

  /** A customer that an end user's client creates. */
  const own = async (verifiedEmail: string | null, locale = 'en'): Promise<Customer> => {
    const input = { name: LURE, email: 'an@example.com', locale }
    return perform(scene.ctx, SERVER, createOwnCustomer({ sub: 'user-1', verifiedEmail }), input, {
      app: await scene.app(),
    })
  }

  /** The receipt, and the reminder three days, one day before and after the end: header and bodies of all. */
  async function mailsTo(customer: Customer): Promise<{ all: string; greetings: string[] }> {
    await scene.subscribe({ customer })
    await sendDueReceipts(scene.ctx)
    for (const days of ['28d', '2d', '2d']) {
      scene.ctx.clock.advance(days)
      await sendDueReminders(scene.ctx)
    }
    const { mails } = scene.inbox
    expect(mails).to.have.length(4)
    return {
      all: mails.map(({ raw, parsed }) => [raw, JSON.stringify(parsed)].join('\n')).join('\n'),
      greetings: mails.map(({ parsed }) => /^(Hello|Xin chào).*$/m.exec(parsed.text ?? '')?.[0] ?? ''),
    }
  }

  for (const [locale, greeting] of [
    ['en', 'Hello,'],
    ['vi', 'Xin chào,'],
  ] as const) {
    it(`is omitted if a client chose it and nobody verified the address, in ${locale}`, async () => {
      const { all, greetings } = await mailsTo(await own(null, locale))
      expect(all).not.to.contain('evil')
      expect(greetings).to.deep.equal(Array(4).fill(greeting))
    })
  }

  it('is the one that a client chose where its token had verified the address', async () => {
    const { greetings } = await mailsTo(await own('an@example.com'))
    expect(greetings).to.deep.equal(Array(4).fill(`Hello ${LURE},`))
    expect(scene.inbox.mails[0]?.parsed.to?.[0]).to.include({ name: LURE, address: 'an@example.com' })
  })

  it('is the one that the seller gave where its server made the customer', async () => {
    const { greetings } = await mailsTo(await aCustomer(scene.ctx, scene.seller, { name: 'An Nguyen' }))
    expect(greetings).to.deep.equal(Array(4).fill('Hello An Nguyen,'))
  })

  it('is not replaced by what the client says it buys', async () => {
    const customer = await own(null)
    const app = await scene.app()
    await inTransaction(scene.ctx, (tx) => updateAppRow(tx, app.id, { allowsClientAmounts: true }))
    const session = await aCheckout(
      scene.ctx,
      { ...scene.seller, app: await scene.app() },
      {
        ...{ mode: 'payment', plan_ref: 'book', plan_name: LURE, amount: 5000, currency: 'VND' },
        customer_id: `cus_${customer.id}`,
      },
    )
    await chooseMethod(scene.ctx, tokenOf(session), 'test')
    await sendDueReceipts(scene.ctx)
    const [mail] = scene.inbox.mails
    expect(mail?.parsed.subject).to.equal('[TEST] Payment received: book')
    expect(JSON.stringify(mail?.parsed)).not.to.contain('evil')
  })
})
