import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { sendDueReceipts } from '#mails/receipts/send-due-receipts.ts'
import { sendDueReminders } from '#mails/reminders/send-due-reminders.ts'
import { changeApp } from '../support/operators.ts'
import type { Locale } from '#shared/locale.ts'
import { receipts } from '#transactions/receipts/store.ts'
import { aScene, type Scene } from '../renewals/scene.ts'
import { aCustomer, aPromotion, paid, priceId } from '../support/factories.ts'

describe('mails about a discounted subscription', () => {
  let scene: Scene
  beforeEach(async () => {
    scene = await aScene()
  })
  afterEach(() => scene.stop())

  const subscribe = async (locale: Locale, externalRef: string): Promise<void> => {
    const customer = await aCustomer(scene.ctx, scene.seller, { locale, email: `${externalRef}@example.com` })
    const body = { external_ref: externalRef, customer_id: `cus_${customer.id}`, promotion_code: 'TET' }
    await paid(scene.ctx, scene.seller, { price_id: priceId(scene.plan), ...body })
  }
  /** The texts of the reminders three days before the end. */
  const remind = async (): Promise<string> => {
    scene.ctx.clock.set('2026-03-29 10:00:00')
    await sendDueReminders(scene.ctx)
    return scene.inbox.mails
      .map(({ parsed }) => parsed.text)
      .join('\n')
      .replaceAll('\u00a0', ' ')
  }

  it('name what a renewal costs, and what is taken off, in both languages', async () => {
    await aPromotion(scene.ctx, scene.seller, { every_period: true })
    await subscribe('en', 'an')
    await subscribe('vi', 'binh')
    const text = await remind()
    expect(text).to.contain('Amount: ₫79,200 (₫19,800 off with the code TET)')
    expect(text).to.contain('Số tiền: 79.200 ₫ (đã giảm 19.800 ₫ nhờ mã TET)')
  })

  it('name the regular amount where the discount was for the first payment', async () => {
    await aPromotion(scene.ctx, scene.seller)
    await subscribe('en', 'an')
    expect(await remind()).to.contain('Amount: ₫99,000\n')
  })

  it('are receipts that name what was paid, and what was taken off, in both languages', async () => {
    await aPromotion(scene.ctx, scene.seller)
    const app = await changeApp(scene.ctx, 'tester', await scene.app(), { receipts: true })
    Object.assign(scene.seller, { app: app ?? (await scene.app()) })
    await subscribe('en', 'an')
    await subscribe('vi', 'binh')
    await sendDueReceipts(scene.ctx)
    const texts = scene.inbox.mails.map(({ parsed: { text = '', html = '' } }) =>
      `${text}${html}`.replaceAll('\u00a0', ' '),
    )
    for (const words of ['Amount: ₫79,200\nDiscount: ₫19,800 (TET)\n', '>₫19,800 (TET)<', 'Giảm giá: 19.800 ₫ (TET)\n'])
      expect(texts.join('\n')).to.contain(words)
  })

  it('are no receipts of what nobody has paid', async () => {
    await aPromotion(scene.ctx, scene.seller, { percent: 100 })
    const app = await changeApp(scene.ctx, 'tester', await scene.app(), { receipts: true })
    Object.assign(scene.seller, { app: app ?? (await scene.app()) })
    await subscribe('en', 'an')
    expect(await scene.ctx.db.count(receipts, '')).to.equal(0)
  })
})
