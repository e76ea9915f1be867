import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SmtpInbox } from '../mail/smtp-inbox.ts'
import { bankMail, MAILBOX, TRANSFER } from '../support/bank-mails.ts'
import { startOidcIssuer } from '../support/oidc-issuer.ts'
import type { PeerLink } from '../support/payos-peer.ts'
import { startRealtimePeer } from '../support/realtime-peer.ts'
import { Receiver } from '../support/receiver.ts'
import { scratchFolder } from '../support/scratch.ts'
import { aServiceAccountFile } from '../support/service-account.ts'
import type { PeerSession } from '../support/stripe-peer.ts'
import { readApp, type AppReads } from './reads.ts'
import {
  genuineMailOf,
  linkAt,
  openWorld,
  PAYOS,
  sessionAt,
  STRIPE,
  type Checkout,
  type Method,
  type SellerApp,
  type World,
} from './world.ts'

const MONTHLY = { amount: 99_000, currency: 'VND', interval_unit: 'month', interval_count: 1 }
const YEARLY = { ...MONTHLY, amount: 990_000, interval_unit: 'year' }
const LIFETIME = { amount: 2_900_000, currency: 'VND', interval_unit: 'lifetime' }
const DOLLARS = { amount: 499, currency: 'USD', interval_unit: 'month', interval_count: 1 }
const WEEKLY = { amount: 29_000, currency: 'VND', interval_unit: 'week', interval_count: 1 }
const FREE_TRIAL = { amount: 0, interval_unit: 'day', interval_count: 7 }
const PAID_TRIAL = { amount: 10_000, interval_unit: 'week', interval_count: 1 }
const BOOK = { mode: 'payment', plan_ref: 'handbook', amount: 150_000, currency: 'VND' }

/** The apps, by their names in the summary. */
type AppName = 'news' | 'school' | 'practice' | 'phone'

/** The payments that are open when the year ends, by method. */
export interface OpenPayments {
  readonly card: Checkout & { readonly session: PeerSession }
  readonly payos: Checkout & { readonly link: PeerLink }
  readonly bank: Checkout & { readonly transferCode: string }
  /** Partly paid by bank transfer. */
  readonly underpaid: Checkout & { readonly transferCode: string }
  /** No method was chosen yet. */
  readonly untouched: Checkout
  /** In the sandbox app. */
  readonly test: Checkout
  readonly expired: Checkout
  /** The id of a bank mail about 77 000 VND without a code. */
  readonly unmatchedMail: number
}

/** The content of the dump, as read by the version that made it. */
export interface Summary {
  /** The last instant of the year, in UTC. */
  readonly takenAt: string
  readonly apps: Readonly<Record<AppName, SellerApp & AppReads>>
  readonly prices: Readonly<Record<'monthly' | 'monthlyPlus' | 'practiceMonthly', string>>
  /** The address of the open bank payments' mails, and the account that they credit. */
  readonly bank: { readonly to: string; readonly account: string }
  readonly open: OpenPayments
  /** An old card payment and an old transfer that were applied and never refunded. */
  readonly refundable: { readonly card: PeerSession; readonly cardTransaction: number; readonly transfer: number }
}

/** Simulates a year of four apps through public interfaces; the database keeps it. Returns its summary. */
export async function simulateYear(): Promise<Summary> {
  const receiver = await Receiver.start()
  const inbox = await SmtpInbox.open()
  const realtime = await startRealtimePeer()
  const issuer = await startOidcIssuer()
  let bank = { to: '', account: TRANSFER.account }
  const world = await openWorld({
    now: '2025-10-01 08:00:00',
    bank: () => bank,
    settings: {
      BILLING_SMTP_URL: inbox.url,
      BILLING_MAIL_FROM: 'billing@pay.example',
      FIREBASE_DATABASE_EMULATOR_HOST: realtime.host,
    },
  })
  const { cli, api, at, sweep, service } = world
  const stops = [receiver, inbox, realtime, issuer, world]

  let news = await anApp(world, 'Tin Nhanh', '--auth', 'hmac', '--webhook-url', receiver.url)
  const school = await anApp(world, 'Lớp Học', '--auth', 'hmac')
  const practice = await anApp(world, 'Tin Nhanh (thử)', '--auth', 'hmac', '--sandbox', '--webhook-url', receiver.url)
  const phone = await anApp(world, 'Đọc Truyện', '--auth', 'identity', '--sandbox')
  await cli('app', 'rotate-webhook-secret', news.id)
  await cli('app', 'rotate-webhook-secret', practice.id)
  await takeCards(world, news)
  await takeTransfers(world, news)
  await takeCards(world, school)
  await takeTransfers(world, practice)
  await cli('method', 'enable', practice.id, 'test')
  await cli('method', 'enable', phone.id, 'test')
  await cli(
    ...['app', 'set-identity', phone.id, '--issuer', issuer.issuer, '--audience', issuer.audience],
    ...['--jwks-url', issuer.jwksUrl],
  )
  const serviceAccount = join(scratchFolder('year'), 'service-account.json')
  writeFileSync(serviceAccount, aServiceAccountFile())
  await cli(
    ...['app', 'set-realtime', phone.id, '--database-url', 'https://demo-proj.firebaseio.com'],
    ...['--service-account', serviceAccount],
  )

  // The first account is disabled in spring; mail to its address must not count for the second one.
  const firstAccount = await cli(
    'bank-account',
    'add',
    '--bank',
    'ACB',
    '--number',
    bank.account,
    '--holder',
    'CONG TY TIN NHANH',
  )
  await cli('bank-account', 'assign', news.id, String(firstAccount.bank_account_id))
  bank = { ...bank, to: firstAccount.forward_address }
  const timo = await cli(
    'bank-account',
    'add',
    ...['--bank', 'TIMO', '--number', '0123456789', '--holder', 'CONG TY TIN NHANH'],
    ...['--mailbox', MAILBOX],
  )
  await cli('bank-account', 'assign', practice.id, String(timo.bank_account_id))

  const { planId, prices: standard } = await aPlan(world, news, 'standard', 'Standard', [
    MONTHLY,
    YEARLY,
    LIFETIME,
    DOLLARS,
    { ...MONTHLY, trial: FREE_TRIAL },
    { ...MONTHLY, trial: PAID_TRIAL },
  ])
  const [monthly, yearly, lifetime, dollars, freeTrial, paidTrial] = standard as Six
  const plus = await aPlan(world, news, 'plus', 'Plus', [
    { ...MONTHLY, amount: 199_000 },
    { ...YEARLY, amount: 1_990_000 },
  ])
  const [monthlyPlus, yearlyPlus] = plus.prices as Six
  const [course] = (await aPlan(world, school, 'course', 'Course', [DOLLARS])).prices as Six
  const basic = [MONTHLY, { ...MONTHLY, trial: PAID_TRIAL }, WEEKLY]
  const [practiceMonthly, practiceTrial, practiceWeekly] = (await aPlan(world, practice, 'basic', 'Basic', basic))
    .prices as Six
  const vip = await cli('plan', 'create', phone.id, '--code', 'vip', '--name', 'VIP', '--price', '49000:VND:month')
  const phoneMonthly = vip.prices[0]!.id

  const buy = async (app: SellerApp, ref: string, body: object, method: Method): Promise<Checkout> => {
    const checkout = await world.checkout(app, ref, body)
    await world.pay(`/checkout/${checkout.token}`, method)
    return checkout
  }
  const renew = async (app: SellerApp, ref: string, method: Method): Promise<void> =>
    world.pay(await world.renewPath(app, ref), method)
  const customer = async (app: SellerApp, name: string, more: object = {}): Promise<string> =>
    (await api(app, 'post', '/api/v1/customers', { name, email: `${name.toLowerCase()}@example.com`, ...more })).id
  const bankPage = async (app: SellerApp, ref: string, body: object): Promise<Checkout & { transferCode: string }> => {
    const checkout = await world.checkout(app, ref, body)
    const address = await world.choose(`/checkout/${checkout.token}`, 'bank_transfer')
    return { ...checkout, transferCode: await world.transferCode(address) }
  }
  const resolve = async (id: number | null, action: string, ...more: string[]): Promise<void> => {
    const note = ['--note', `${action} agreed by phone`]
    await cli('transaction', 'resolve', String(id), '--action', action, ...note, ...more)
  }

  // October: the first subscribers, each with another method.
  const anh = await customer(news, 'Anh', {
    locale: 'vi',
    merchant_customer_id: 'm-anh',
    cc_emails: ['ketoan@example.com'],
  })
  const refundableCard = await buy(news, 'anh', { price_id: monthly, customer_id: anh }, 'card')
  const refundableSession = world.stripe.sessions.at(-1)!
  const refundableTransfer = await buy(
    news,
    'binh',
    { price_id: monthly, customer_id: await customer(news, 'Binh') },
    'bank_transfer',
  )
  await buy(news, 'chi', { price_id: monthly, customer_id: await customer(news, 'Chi') }, 'payos')
  await buy(news, 'dung', { price_id: yearly, customer_id: await customer(news, 'Dung') }, 'card')
  await buy(news, 'em', { price_id: dollars }, 'card')
  await buy(school, 'pupil-1', { price_id: course }, 'card')
  await buy(
    practice,
    'tester-1',
    { price_id: practiceMonthly, customer_id: await customer(practice, 'Tester') },
    'test',
  )
  for (const ref of ['sub-1', 'sub-2', 'sub-3']) {
    const headers = {
      'X-App-Key': phone.apiKey,
      Authorization: `Bearer ${await issuer.token(service.ctx.clock.now(), ref)}`,
      'Content-Type': 'application/json',
    }
    const urls = { success_url: 'https://phone.example/ok', cancel_url: 'https://phone.example/no' }
    const raw = JSON.stringify({ external_ref: ref, mode: 'subscription', price_id: phoneMonthly, ...urls })
    const opened = await service.call('POST', '/api/v1/checkout-sessions', { headers, raw })
    await world.pay(new URL(opened.body.data.checkout_url).pathname, 'test')
  }
  at('2025-10-20 07:30:00')
  await world.checkout(news, 'giang', { price_id: freeTrial, customer_id: await customer(news, 'Giang') })
  await buy(news, 'hoa', { price_id: paidTrial, customer_id: await customer(news, 'Hoa') }, 'bank_transfer')
  await buy(news, 'khanh', BOOK, 'bank_transfer')
  await buy(news, 'khanh', { ...BOOK, amount: 1999, currency: 'USD' }, 'card')
  at('2025-10-25 07:30:00')
  await renew(news, 'giang', 'payos')
  await renew(news, 'hoa', 'card')
  at('2025-10-31 10:00:00')
  await buy(news, 'linh', { price_id: monthly, customer_id: await customer(news, 'Linh') }, 'bank_transfer')

  // November: subscribers of another service are imported.
  at('2025-11-03 03:00:00')
  const file = join(scratchFolder('year'), 'subscriptions.csv')
  writeFileSync(
    file,
    [
      'external_ref,price_id,current_period_end,anchor_day,customer_email,customer_name',
      `old-1,${monthly},2025-11-30 00:00:00,31,old-1@example.com,Old One`,
      `old-2,${yearly},2026-05-15 12:00:00,,old-2@example.com,Old Two`,
      `old-3,${lifetime},,,,`,
      `old-4,${monthly},2025-10-05 00:00:00,,old-4@example.com,Old Four`,
    ].join('\n'),
  )
  await cli('subscription', 'import', news.id, file)

  /** One-time events, by the month at whose end they happen. */
  const monthEndEvents: Record<number, () => Promise<void>> = {
    async 1() {
      await api(news, 'put', '/api/v1/subscriptions/dung/plan', { price_id: yearlyPlus })
      const refused = await bankPage(news, 'phuong', { price_id: monthly })
      await buy(news, 'phuong', { price_id: lifetime }, 'card')
      await world.transfer(refused.transferCode, 99_000)
      const returned = await bankPage(news, 'quan', { price_id: monthly })
      await buy(news, 'quan', { price_id: lifetime }, 'payos')
      await world.transfer(returned.transferCode, 99_000)
      await resolve(returned.transactionId, 'refund', '--reference', 'FT-BACK-1')
    },
    async 2() {
      await cli('subscription', 'switch-plan', news.id, 'binh', monthlyPlus)
      await buy(news, 'vy', { price_id: yearly }, 'card')
    },
    async 3() {
      // Another plan, bought while the year is valid.
      await buy(news, 'vy', { price_id: monthlyPlus }, 'card')
      const sums = {
        'under-open': 60_000,
        'under-rest': 60_000,
        'under-accepted': 95_000,
        'under-gift': 10_000,
        'under-back': 50_000,
      }
      const ids: Record<string, Checkout & { transferCode: string }> = {}
      for (const [ref, amount] of Object.entries(sums)) {
        ids[ref] = await bankPage(news, ref, { price_id: monthly })
        await world.transfer(ids[ref].transferCode, amount)
      }
      await world.transfer(ids['under-rest']!.transferCode, 39_000)
      await resolve(ids['under-accepted']!.transactionId, 'complete')
      await resolve(ids['under-gift']!.transactionId, 'dismiss')
      await resolve(ids['under-back']!.transactionId, 'refund', '--reference', 'FT-BACK-2')
    },
    async 4() {
      const ids: Record<string, number | null> = {}
      for (const ref of ['twice-open', 'twice-back', 'twice-gift', 'too-much']) {
        const { transactionId, transferCode } = await bankPage(news, ref, { price_id: monthly })
        ids[ref] = transactionId
        await world.transfer(transferCode, ref === 'too-much' ? 120_000 : 99_000)
        if (ref !== 'too-much') await world.transfer(transferCode, 99_000)
      }
      await resolve(ids['twice-back']!, 'refund', '--reference', 'FT-BACK-3')
      await resolve(ids['twice-gift']!, 'dismiss')
      const reported = await bankPage(news, 'told-twice', { price_id: monthly })
      for (let time = 0; time < 2; time += 1)
        await world.transfer(reported.transferCode, 99_000, { movement: 777_000_001 })
    },
    async 5() {
      const lost = await bankPage(news, 'lost-code', { price_id: monthly })
      await world.transfer('chuyen tien hoc', 99_000)
      await world.transfer('tra no', 12_000)
      await world.transfer(lost.transferCode, 0, {
        mail: await genuineMailOf('ACB', bankMail('ACB', TRANSFER, {}, 'Kính gửi Quý khách, ACB thay đổi biểu phí.')),
      })
      const [, gift, match] = (await cli('bank-mail', 'list', '--unmatched')).sort((a, b) => b.id - a.id)
      await cli('bank-mail', 'match', String(match!.id), String(lost.transactionId), '--note', 'the payer called')
      await cli('bank-mail', 'close', String(gift!.id), '--note', 'not ours')
      // Another account replaces the first; one payer still transfers to the old one.
      const slow = await bankPage(news, 'old-account', { price_id: monthly })
      const second = await cli(
        'bank-account',
        'add',
        '--bank',
        'ACB',
        '--number',
        '27550952',
        '--holder',
        'CONG TY TIN NHANH',
      )
      await cli('bank-account', 'assign', news.id, String(second.bank_account_id))
      await cli('bank-account', 'disable', String(firstAccount.bank_account_id))
      await world.transfer(slow.transferCode, 99_000)
      bank = { to: second.forward_address, account: '27550952' }
    },
    async 6() {
      const trials = [
        await bankPage(news, 'trial-twice', { price_id: paidTrial }),
        await bankPage(news, 'trial-twice', { price_id: paidTrial }),
      ]
      for (const { transferCode } of trials) await world.transfer(transferCode, 10_000)
      const stop = await world.renewPath(news, 'reader-2')
      await service.call('POST', `${stop}/opt-out`)
      await cli('subscription', 'reminders', news.id, 'reader-4', 'off')
      at('2026-04-26 21:00:00')
      await buy(news, 'no-mailbox', { price_id: monthly, customer_id: await customer(news, 'Nobody') }, 'card')
    },
    async 7() {
      const back = await buy(news, 'card-back', { price_id: dollars }, 'card')
      await resolve(back.transactionId, 'refund')
      await buy(news, 'dashboard', { price_id: dollars }, 'card')
      world.stripe.refund(world.stripe.sessions.at(-1)!)
      await buy(news, 'dashboard-part', { price_id: dollars }, 'card')
      world.stripe.refund(world.stripe.sessions.at(-1)!, 100)
      at('2026-05-26 22:00:00')
      inbox.behaviour = 'refuse-recipient'
      await sweep()
      inbox.behaviour = 'accept'
      // A monthly payment that was pending while a year of another plan was bought.
      await buy(news, 'late', { price_id: monthly }, 'card')
      const slow = await world.choose(await world.renewPath(news, 'late'), 'payos')
      at('2026-05-26 22:20:00')
      await buy(news, 'late', { price_id: yearlyPlus }, 'bank_transfer')
      at('2026-05-26 22:30:00')
      await world.settle(slow, 'payos')
    },
    async 8() {
      news = { ...news, secret: (await cli('app', 'rotate-secret', news.id)).api_secret }
      const { id } = await api(news, 'post', '/api/v1/customers', { name: 'Ngoc', email: 'ngoc@example.com' })
      await api(news, 'put', '/api/v1/subscriptions/reader-1/customer', { customer_id: id })
      await api(news, 'patch', `/api/v1/customers/${id}`, { email: 'ngoc.tran@example.com', locale: 'vi' })
      await api(practice, 'post', '/api/v1/test-clock', { advance_seconds: 40 * 86_400 })
      await buy(practice, 'tester-2', { price_id: practiceTrial }, 'test')
      const timoPaid = await bankPage(practice, 'tester-3', { price_id: practiceMonthly })
      await world.transfer(timoPaid.transferCode, 99_000, { bank: 'TIMO', to: timo.forward_address })
      await world.checkout(news, 'walked-away', { price_id: monthly })
      await world.choose(
        `/checkout/${(await world.checkout(news, 'walked-away', { price_id: monthly })).token}`,
        'card',
      )
      const part = await world.checkout(news, 'payos-part', { price_id: monthly })
      await world.pay(`/checkout/${part.token}`, 'payos', 50_000)
    },
    async 9() {
      const keyed = { headers: { 'Idempotency-Key': 'order-4711' } }
      await service.seller(news).post('/api/v1/customers', { name: 'Son', email: 'son@example.com' }, keyed)
      await cli('price', 'archive', news.id, planId, yearly)
      await api(practice, 'post', '/api/v1/test-clock', { advance_seconds: 52 * 86_400 })
      await renew(practice, 'tester-2', 'test')
      realtime.behaviour = 500
      await world.pay(await world.renewPath(phone, 'sub-3'), 'test')
      realtime.behaviour = 'ok'
      await world.pay(await world.renewPath(phone, 'sub-2'), 'test')
    },
    async 10() {
      // A receiver that stays unreachable until the last attempt has failed.
      receiver.answer = 503
      await buy(news, 'reader-1', { price_id: monthly }, 'card')
      for (const time of ['26 20:01', '26 20:10', '26 20:30', '26 22:00', '27 03:00', '27 09:00']) {
        at(`2026-08-${time}:00`)
        await sweep()
      }
      receiver.answer = 200
    },
  }

  // Each month some renew before the end, some after it, each by its method.
  for (let month = 1; month <= 11; month += 1) {
    const day = (date: number, time: string): string =>
      `${month < 3 ? 2025 : 2026}-${String(((month + 9) % 12) + 1).padStart(2, '0')}-${String(date).padStart(2, '0')} ${time}`
    at(month > 1 ? day(1, '06:00:00') : day(4, '06:00:00'))
    await sweep()
    await renew(news, 'anh', 'card')
    await renew(news, 'binh', 'bank_transfer')
    if (month % 2 === 1) await renew(news, 'chi', 'payos')
    if (month < 5) await renew(school, 'pupil-1', 'card')
    await renew(practice, 'tester-1', 'test')
    at(day(5, '11:00:00'))
    if (month % 3 !== 0) await renew(news, 'em', 'card')
    if (month < 8) await renew(news, 'giang', 'payos')
    if (month === 1) await renew(news, 'old-1', 'bank_transfer')
    if (month > 1 && month < 9) await renew(news, 'old-1', month % 2 === 0 ? 'card' : 'bank_transfer')
    await buy(practice, `walk-in-${month}`, { price_id: practiceWeekly }, 'test')
    at(day(12, '09:00:00'))
    await sweep()
    await buy(
      news,
      `reader-${month}`,
      { price_id: month % 2 === 0 ? monthly : dollars, customer_id: await customer(news, `Reader${month}`) },
      'card',
    )
    at(day(26, '20:00:00'))
    await sweep()
    if (month < 6) await renew(news, 'linh', 'bank_transfer')
    if (month % 4 === 0) {
      receiver.answer = 503
      await sweep()
      receiver.answer = 200
    }
    await monthEndEvents[month]?.()
  }

  at('2026-10-01 04:00:00')
  await sweep()
  await world.choose(`/checkout/${(await world.checkout(school, 'pupil-2', { price_id: course })).token}`, 'card')
  at('2026-10-01 04:20:00')
  world.stripe.mode = 'down'
  await cli('reconcile')
  world.stripe.mode = 'up'
  const expired = await world.checkout(news, 'open-expired', { price_id: monthly, expires_in: 1800 })
  at('2026-10-01 05:00:00')
  const unmatched = await world.transfer('khong co ma', 77_000)
  if (unmatched.reason !== 'no_transfer_code') throw new Error(`the mail was ${JSON.stringify(unmatched)}`)
  const card = await world.checkout(news, 'open-card', { price_id: dollars })
  const session = sessionAt(world.stripe, await world.choose(`/checkout/${card.token}`, 'card'))
  const payos = await world.checkout(news, 'open-payos', { price_id: monthlyPlus })
  const link = linkAt(world.payos, await world.choose(`/checkout/${payos.token}`, 'payos'))
  const underpaid = await bankPage(news, 'open-underpaid', { price_id: monthly })
  await world.transfer(underpaid.transferCode, 40_000)
  const [mail] = await cli('bank-mail', 'list', '--unmatched')
  // Pending events.
  await renew(news, 'anh', 'card')
  await renew(news, 'chi', 'payos')
  const open: OpenPayments = {
    card: { ...card, session },
    payos: { ...payos, link },
    bank: await bankPage(news, 'open-bank', { price_id: monthly }),
    underpaid,
    untouched: await world.checkout(news, 'open-untouched', { price_id: monthly }),
    test: await world.checkout(practice, 'open-test', { price_id: practiceMonthly }),
    expired,
    unmatchedMail: mail!.id,
  }
  const takenAt = '2026-10-01 05:10:00'
  at(takenAt)
  const read = async (app: SellerApp): Promise<SellerApp & AppReads> => ({ ...app, ...(await readApp(world, app)) })
  const summary: Summary = {
    takenAt,
    apps: {
      news: await read(news),
      school: await read(school),
      practice: await read(practice),
      phone: await read(phone),
    },
    prices: { monthly, monthlyPlus, practiceMonthly },
    bank,
    open,
    refundable: {
      card: refundableSession,
      cardTransaction: refundableCard.transactionId!,
      transfer: refundableTransfer.transactionId!,
    },
  }
  const { faults } = await cli('ledger', 'verify')
  if (faults.length > 0) throw new Error(`the ledger of the year has discrepancies: ${JSON.stringify(faults)}`)
  for (const each of stops) await each.stop()
  return summary
}

type Six = [string, string, string, string, string, string]

async function anApp(world: World, name: string, ...options: string[]): Promise<SellerApp> {
  const {
    app_id: id,
    api_key: apiKey,
    api_secret: secret,
  } = await world.cli('app', 'create', '--name', name, ...options)
  return { id: String(id), apiKey, secret: secret ?? '' }
}

async function takeCards({ cli }: World, { id }: SellerApp): Promise<void> {
  process.env['BILLING_CLI_STRIPE_SECRET_KEY'] = STRIPE.secretKey
  process.env['BILLING_CLI_STRIPE_WEBHOOK_SECRET'] = STRIPE.webhookSecret
  await cli('method', 'enable', id, 'card', '--skip-check')
}

async function takeTransfers({ cli }: World, { id }: SellerApp): Promise<void> {
  process.env['BILLING_CLI_PAYOS_CLIENT_ID'] = PAYOS.clientId
  process.env['BILLING_CLI_PAYOS_API_KEY'] = PAYOS.apiKey
  process.env['BILLING_CLI_PAYOS_CHECKSUM_KEY'] = PAYOS.checksumKey
  await cli('method', 'enable', id, 'payos', '--skip-check')
  await cli('method', 'enable', id, 'bank_transfer')
}

async function aPlan(
  { api }: World,
  app: SellerApp,
  code: string,
  name: string,
  prices: readonly object[],
): Promise<{ planId: string; prices: readonly string[] }> {
  const plan = await api(app, 'post', '/api/v1/plans', { code, name, prices })
  return { planId: plan.id, prices: plan.prices.map(({ id }: { id: string }) => id) }
}
