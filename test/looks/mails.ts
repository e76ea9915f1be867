import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { operator } from '#commands/caller.ts'
import { openBankPage } from '#checkout/open-bank-page.ts'
import { resolveTransaction } from '#decisions/resolve-transaction.ts'
import { sendDueReceipts } from '#mails/receipts/send-due-receipts.ts'
import { sendDueReminders } from '#mails/reminders/send-due-reminders.ts'
import { sendTestMail } from '#mails/send-test-mail.ts'
import { formatId } from '#shared/ids.ts'
import type { ReceivedMail } from '../mail/smtp-inbox.ts'
import { takeTransfers, transfer } from '../pages/bank-scenario.ts'
import { DESKTOP, PHONE, startBrowser } from '../pages/browser.ts'
import { BRAND, LONG_NAMES } from '../pages/scenes.ts'
import { aScene } from '../renewals/scene.ts'
import {
  aCheckout,
  aCustomer,
  aPlan,
  aPromotion,
  LIFETIME,
  MONTHLY,
  PAID_TRIAL,
  priceId,
  tokenOf,
} from '../support/factories.ts'
import { changeApp } from '../support/operators.ts'
import { LOCALES, type Locale } from '#shared/locale.ts'

const OPERATOR = 'tester'

interface Shop {
  readonly name: string
  readonly sandbox: boolean
  readonly plan: string
  readonly payer: string
  readonly settings: object
}

const SHOPS: Readonly<Record<string, Shop>> = {
  plain: { name: 'Sách Nói Hay', sandbox: true, plan: 'Premium', payer: 'Nguyễn Văn An', settings: {} },
  branded: { name: 'Sách Nói Hay', sandbox: false, plan: 'Gói Gia đình', payer: 'Nguyễn Văn An', settings: BRAND },
  long: {
    name: LONG_NAMES.app,
    sandbox: true,
    plan: LONG_NAMES.plan,
    payer: 'Công Tằng Tôn Nữ Nguyễn Thị Phương Thảo Trinh',
    settings: {},
  },
}

/** A picture of every mail as an inbox has it, `<shop>-<mail>.<phone|desktop>.<en|vi>.<light|dark>.png`, and its text part beside it. */
export async function lookAtMails(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const browser = await startBrowser()
  for (const [title, shop] of Object.entries(SHOPS)) {
    for (const locale of LOCALES) {
      for (const [what, mail] of await mailsOf(shop, locale)) {
        const { subject = '', text = '', html = '' } = mail.parsed
        writeFileSync(join(folder, `${title}-${what}.${locale}.txt`), `${subject}\n\n${text}`)
        await photograph(browser, html, (screen) => join(folder, `${title}-${what}.${screen}.${locale}`))
      }
    }
  }
  await browser.close()
}

async function photograph(browser: Browser, html: string, pathOf: (screen: string) => string): Promise<void> {
  for (const [screen, viewport] of Object.entries({ phone: PHONE, desktop: DESKTOP })) {
    const page = await browser.newPage({ viewport, offline: true })
    await page.setContent(html)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await page.screenshot({ path: `${pathOf(screen)}.${colorScheme}.png`, fullPage: true })
    }
    await page.close()
  }
}

async function mailsOf(shop: Shop, locale: Locale): Promise<[string, ReceivedMail][]> {
  const app = { name: shop.name, sandbox: shop.sandbox }
  const scene = await aScene({ app })
  const { ctx, seller } = scene
  await changeApp(ctx, OPERATOR, seller.app, { ...shop.settings, receipts: true })
  await takeTransfers(ctx, seller.app)
  const plan = await aPlan(ctx, seller, {
    name: shop.plan,
    prices: [MONTHLY, { ...MONTHLY, trial: PAID_TRIAL }, LIFETIME],
  })
  const customer = await aCustomer(ctx, seller, { name: shop.payer, locale })
  await aPromotion(ctx, seller, { code: 'TET2027', every_period: true })
  const checkout = async (externalRef: string, price: number, body: object = {}) =>
    aCheckout(
      ctx,
      { ...seller, app: await scene.app() },
      {
        external_ref: externalRef,
        price_id: priceId(plan, price),
        customer_id: formatId('cus', customer.id),
        ...body,
      },
    )
  const mails: [string, ReceivedMail][] = []
  const take = async (what: string, send: () => Promise<unknown>): Promise<void> => {
    await send()
    const [mail, ...others] = scene.inbox.mails
    if (!mail || others.length > 0) throw new Error(`${what}: ${scene.inbox.mails.length} mails`)
    mails.push([what, mail])
    scene.inbox.clear()
  }
  const receipts = () => sendDueReceipts(ctx)
  const remindersAt = (moment: string) => () => {
    ctx.clock.set(moment)
    return sendDueReminders(ctx)
  }

  const monthly = await checkout('monthly', 0)
  await openBankPage(ctx, tokenOf(monthly))
  await transfer({ service: scene }, monthly.transaction_id!, 60_000)
  await take('receipt-part', receipts)
  await transfer({ service: scene }, monthly.transaction_id!, 39_000)
  await take('receipt-received', receipts)
  const lifetime = await checkout('lifetime', 2)
  await transfer({ service: scene }, lifetime.transaction_id!, LIFETIME.amount)
  await take('receipt-received-lifetime', receipts)
  const refund = { action: 'refund', note: 'asked', reference: 'BACK-1', amount: 1_000_000 } as const
  await resolveTransaction(ctx, operator(OPERATOR), { transactionId: lifetime.transaction_id!, ...refund })
  await take('receipt-refunded', receipts)
  const trial = await checkout('trial', 1)
  await transfer({ service: scene }, trial.transaction_id!, PAID_TRIAL.amount)
  await take('receipt-received-trial', receipts)

  await take('reminder-3-trial', remindersAt('2026-03-06 10:00:00'))
  await take('reminder-1-trial', remindersAt('2026-03-07 12:00:00'))
  await take('reminder-0-trial', remindersAt('2026-03-09 10:00:00'))
  await take('reminder-3', remindersAt('2026-03-30 10:00:00'))
  await take('reminder-1', remindersAt('2026-03-31 12:00:00'))
  await take('reminder-0', remindersAt('2026-04-02 10:00:00'))
  const discounted = await checkout('discounted', 0, { promotion_code: 'TET2027' })
  await transfer({ service: scene }, discounted.transaction_id!, 79_200)
  await take('receipt-received-discounted', receipts)
  await take('reminder-3-discounted', remindersAt('2026-04-30 10:00:00'))
  await take('test', () => sendTestMail(ctx, 'operator@shop.example', locale))
  await scene.stop()
  return mails
}
