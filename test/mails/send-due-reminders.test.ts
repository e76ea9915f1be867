import { events } from '#webhooks/store.ts'
import type { SubscriptionRenewalReminderSentEvent } from '../../client/src/types.ts'
import { operator, payer } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { updateAppRow, apps } from '#apps/store.ts'
import { inTransaction } from '#commands/transaction.ts'
import { updateCustomer } from '#customers/update-customer.ts'
import { listAuditEntries } from '#commands/store.ts'
import { checkReminders } from '#doctor/check-work.ts'
import { optOut, setReminders } from '#renewals/opt-out.ts'
import { listDueSubscriptions } from '#mails/reminders/due/store.ts'
import { planReminders } from '#mails/reminders/plan-reminders.ts'
import { refusedReminders, unconfirmedReminders } from '#mails/mail-lists.ts'
import { retryRefusedReminders } from '#mails/reminders/retry-refused.ts'
import { sendDueReminders } from '#mails/reminders/send-due-reminders.ts'
import { settleReminder } from '#mails/settle-mail.ts'
import { asAppTime } from '#shared/time.ts'
import { headerOf } from '../mail/smtp-inbox.ts'
import {
  DAILY,
  FREE_TRIAL,
  LIFETIME,
  MONTHLY,
  YEARLY,
  aCustomer,
  aPlan,
  priceId,
  SERVER,
} from '../support/factories.ts'
import { rowsReadBy } from '../support/rows-read.ts'
import { archivePlan, attachCustomer, setDisabled, switchTo } from '../support/operators.ts'
import { aScene, tokenIn, type Scene } from '../renewals/scene.ts'

const LINH = operator('linh')
const NOTHING = { sent: 0, failed: 0, refused: 0, unconfirmed: 0, dropped: 0 }
const TWO_DAYS = { ...DAILY, interval_count: 2 }

async function reminderEvents(scene: Scene): Promise<SubscriptionRenewalReminderSentEvent[]> {
  const rows = await scene.ctx.db.all(events, "WHERE event_type = 'subscription.renewal_reminder_sent' ORDER BY id")
  return rows.map(({ body }) => JSON.parse(body.toString('utf8')) as SubscriptionRenewalReminderSentEvent)
}

describe('reminder e-mails', () => {
  let scene: Scene

  beforeEach(async () => {
    // A monthly period from 2026-03-01 10:00:00 to 2026-04-01 10:00:00.
    scene = await aScene()
  })
  afterEach(() => scene.stop())

  const sweep = () => sendDueReminders(scene.ctx)
  const sweepAt = async (timestamp: string) => {
    scene.ctx.clock.set(timestamp)
    return sweep()
  }

  const resume = () =>
    perform(scene.ctx, LINH, setReminders, { reminders: 'on' }, { app: scene.seller.app, externalRef: 'user-1' })
  const settle = (reminderId: number, outcome: 'sent' | 'not_sent') =>
    perform(scene.ctx, LINH, settleReminder, { outcome }, { mailId: reminderId })

  describe('when', () => {
    /** What the subscriber of a price has received in all after a sweep at each time. */
    const sends =
      (price: object, ...sweeps: [time: string, stages: string[]][]) =>
      async () => {
        await scene.subscribe({ plan: await aPlan(scene.ctx, scene.seller, { prices: [price] }) })
        for (const [time, stages] of sweeps) {
          await sweepAt(time)
          expect(await scene.stages(), time).to.deep.equal(stages)
        }
      }

    it(
      'a period has its reminders 3 days and 1 day before its end, and its notice after it, each once',
      sends(
        MONTHLY,
        ['2026-03-29 09:59:59', []],
        ['2026-03-29 10:00:00', ['3']],
        ['2026-03-30 12:00:00', ['3']],
        ['2026-03-31 09:59:59', ['3']],
        ['2026-03-31 10:00:00', ['3', '1']],
        ['2026-04-01 09:59:59', ['3', '1']],
        ['2026-04-01 10:00:00', ['3', '1', '0']],
        ['2026-04-08 09:59:59', ['3', '1', '0']],
        ['2026-05-01 10:00:00', ['3', '1', '0']],
      ),
    )

    it('after a renewal the next period has its own', async () => {
      await scene.subscribe()
      await sweepAt('2026-03-29 10:00:00')
      await scene.subscribe()
      await sweepAt('2026-04-01 10:00:00')
      expect(await scene.stages()).to.deep.equal(['3'])
      await sweepAt('2026-04-28 10:00:00')
      expect(await scene.stages()).to.deep.equal(['3', '3'])
    })

    it(
      'a period shorter than 3 days has no 3-day reminder',
      sends(TWO_DAYS, ['2026-03-01 10:00:00', []], ['2026-03-02 10:00:00', ['1']]),
    )

    it('a daily period has its 1-day reminder at its start', sends(DAILY, ['2026-03-01 10:00:00', ['1']]))

    it(
      'a daemon that was down sends only the stage that holds now',
      sends(MONTHLY, ['2026-04-01 09:00:00', ['1']], ['2026-04-05 09:00:00', ['1', '0']]),
    )

    it(
      'a daemon that was down until the grace window had passed sends nothing',
      sends(MONTHLY, ['2026-04-08 10:00:00', []]),
    )

    it('a trial that ends behaves the same', async () => {
      const plan = await aPlan(scene.ctx, scene.seller, { name: 'Gold', prices: [{ ...MONTHLY, trial: FREE_TRIAL }] })
      await scene.subscribe({ plan })
      await sweepAt('2026-03-05 10:00:00')
      await sweepAt('2026-03-08 10:00:00')
      expect(await scene.stages()).to.deep.equal(['3', '0'])
      expect(scene.inbox.mails.map(({ parsed }) => parsed.subject)).to.deep.equal([
        '[TEST] Your Gold trial ends on 8 March 2026',
        '[TEST] Your Gold trial has ended',
      ])
    })

    it('a sandbox app’s mails go by its own clock', async () => {
      await scene.subscribe()
      await inTransaction(scene.ctx, (tx) =>
        updateAppRow(tx, scene.seller.app.id, { clockOffsetMs: 30 * 24 * 3600 * 1000 }),
      )
      await sweep()
      expect(await scene.stages()).to.deep.equal(['1'])
    })
  })

  describe('to whom', () => {
    it('without a customer there is no mail; one attached inside the window gets it', async () => {
      await scene.subscribe({ customer: null })
      await sweepAt('2026-03-29 10:00:00')
      expect(scene.inbox.mails).to.have.lengthOf(0)
      const { id } = await aCustomer(scene.ctx, scene.seller, { email: 'late@example.com' })
      await attachCustomer(scene.ctx, 'tester', scene.seller.app, id)
      await sweep()
      expect(scene.inbox.mails[0]?.recipients).to.deep.equal(['late@example.com'])
    })

    it('lifetime subscriptions get none', async () => {
      const plan = await aPlan(scene.ctx, scene.seller, { prices: [LIFETIME] })
      await scene.subscribe({ plan })
      await sweepAt('2036-03-01 10:00:00')
      expect(scene.inbox.mails).to.have.lengthOf(0)
    })

    it('customers of a disabled app get none, and get them again when it is enabled', async () => {
      await scene.subscribe()
      scene.inbox.beforeGoAhead = () => setDisabled(scene.ctx, 'tester', scene.seller.app, true)
      expect(await sweepAt('2026-03-29 10:00:00'), 'while the mail is on its way').to.include({ sent: 0, dropped: 1 })
      scene.inbox.beforeGoAhead = null
      expect(await sweep()).to.deep.equal(NOTHING)
      expect(scene.inbox.mails).to.have.lengthOf(0)
      await setDisabled(scene.ctx, 'tester', await scene.app(), false)
      await sweep()
      expect(await scene.stages()).to.deep.equal(['3'])
    })

    it('one who opted out gets none, for this subscription alone, until an operator resumes them', async () => {
      const { renewalToken } = await scene.subscribe()
      await scene.subscribe({ externalRef: 'user-2' })
      await perform(scene.ctx, payer, optOut, undefined, { renewalToken })
      await sweepAt('2026-03-29 10:00:00')
      expect([await scene.stages(), await scene.stages('user-2')]).to.deep.equal([[], ['3']])
      expect(await resume()).to.equal(true)
      await sweep()
      expect(await scene.stages()).to.deep.equal(['3'])
    })

    it('one who opts out or pays while the mail is on its way to the server gets none', async () => {
      const { renewalToken } = await scene.subscribe()
      scene.ctx.clock.set('2026-03-29 10:00:00')
      scene.inbox.beforeGoAhead = () => perform(scene.ctx, payer, optOut, undefined, { renewalToken })
      expect(await sweep()).to.include({ sent: 0, dropped: 1 })
      await resume()
      scene.inbox.beforeGoAhead = async () => {
        await scene.subscribe()
      }
      expect(await sweep()).to.include({ sent: 0, dropped: 1 })
      scene.inbox.beforeGoAhead = null
      expect(await sweep()).to.deep.equal(NOTHING)
      expect(scene.inbox.messagesSeen).to.equal(0)
    })

    it('subscribers of archived plans and prices still get reminders', async () => {
      await scene.subscribe()
      await archivePlan(scene.ctx, 'tester', scene.seller.app, scene.plan.id)
      await sweepAt('2026-03-29 10:00:00')
      expect(await scene.stages()).to.deep.equal(['3'])
    })
  })

  describe('what', () => {
    const firstMail = async () => {
      await sweepAt('2026-03-29 10:00:00')
      return scene.inbox.mails[0] ?? expect.fail('no mail')
    }

    it('the mail goes to the customer, Cc and Bcc, in the customer’s language, under the app’s name', async () => {
      const customer = await aCustomer(scene.ctx, scene.seller, {
        name: 'Nguyễn Văn An',
        locale: 'vi',
        cc_emails: ['boss@example.com'],
        bcc_emails: ['archive@example.com'],
      })
      const { renewalToken } = await scene.subscribe({ customer })
      const mail = await firstMail()
      expect(mail.recipients).to.have.members(['an@example.com', 'boss@example.com', 'archive@example.com'])
      expect(mail.raw).not.to.contain('archive@example.com')
      expect(mail.parsed.from).to.include({ name: 'Reader', address: 'billing@pay.example' })
      expect(mail.parsed.to?.[0]).to.include({ name: 'Nguyễn Văn An', address: 'an@example.com' })
      expect(mail.parsed.cc?.map(({ address }) => address)).to.deep.equal(['boss@example.com'])
      expect(mail.parsed.subject).to.equal('[TEST] Gói Premium của bạn sẽ hết hạn ngày 1/4/2026')
      const link = `${scene.ctx.config.baseUrl}/renew/${renewalToken}`
      for (const part of [mail.parsed.text, mail.parsed.html]) {
        expect(part).to.contain('99.000').and.to.contain('17:00 ngày 1/4/2026 (GMT+7)')
        expect(part).to.contain(link).and.to.contain(`${link}/opt-out`)
        expect(part).to.contain('TEST')
      }
    })

    it('the mail can be opted out of with one click (RFC 8058)', async () => {
      const { renewalToken } = await scene.subscribe()
      const mail = await firstMail()
      expect(tokenIn(mail)).to.equal(renewalToken)
      expect(headerOf(mail, 'List-Unsubscribe')).to.equal(`<${scene.ctx.config.baseUrl}/renew/${renewalToken}/opt-out>`)
      expect(headerOf(mail, 'List-Unsubscribe-Post')).to.equal('List-Unsubscribe=One-Click')
    })

    it('an app with a sender of its own sends under it', async () => {
      await inTransaction(scene.ctx, (tx) => updateAppRow(tx, scene.seller.app.id, { mailFrom: 'hi@reader.example' }))
      await scene.subscribe()
      const { from, parsed } = await firstMail()
      expect(from).to.equal('hi@reader.example')
      expect(parsed.from).to.include({ name: 'Reader', address: 'hi@reader.example' })
    })

    it('a live app’s mail has no TEST mark', async () => {
      await scene.subscribe()
      await scene.ctx.db.update(apps, { id: scene.seller.app.id }, { isSandbox: false })
      expect((await firstMail()).raw).not.to.contain('TEST')
    })

    it('after a plan switch the mail names the new plan and its regular amount', async () => {
      await scene.subscribe()
      const gold = await aPlan(scene.ctx, scene.seller, { name: 'Gold', prices: [{ ...YEARLY, trial: FREE_TRIAL }] })
      await switchTo(scene.ctx, 'tester', scene.seller.app, priceId(gold))
      const { parsed } = await firstMail()
      expect(parsed.subject).to.equal('[TEST] Your Gold subscription ends on 1 April 2026')
      expect(parsed.text).to.contain('Amount: ₫990,000').and.to.contain('Next period: 1 year')
    })

    it('without an SMTP server in development each mail is a file, and the log names its path', async () => {
      await scene.subscribe()
      scene.ctx.clock.set('2026-03-29 10:00:00')
      const config = { ...scene.ctx.config, smtpUrl: null, mailFrom: null }
      expect(await sendDueReminders({ ...scene.ctx, config })).to.include({ sent: 1 })
      expect(scene.ctx.logged.join('')).to.match(/"path":"[^"]+\/mail\/reminder\.[^"]+\.eml"/)
      expect(scene.ctx.logged.join('')).not.to.contain((await scene.subscription()).renewalToken)
    })
  })

  describe('webhook subscription.renewal_reminder_sent', () => {
    it('goes out once per stage and period, with exactly its fields and never the link', async () => {
      const { planId, priceId: price, customerId } = await scene.subscribe()
      await sweepAt('2026-03-29 10:30:00')
      await sweep()
      const [event, ...more] = await reminderEvents(scene)
      expect(more).to.deep.equal([])
      expect(event).to.deep.equal({
        event_type: 'subscription.renewal_reminder_sent',
        app_id: scene.seller.app.id,
        created_at: '2026-03-29T10:30:00+00:00',
        data: {
          external_ref: 'user-1',
          paygate_customer_id: `cus_${customerId}`,
          merchant_customer_id: null,
          plan_id: `plan_${planId}`,
          price_id: `price_${price}`,
          plan_ref: scene.plan.code,
          reminder_day: 3,
          period_end: '2026-04-01 10:00:00',
          in_trial: false,
          sent_at: '2026-03-29T10:30:00+00:00',
        },
      })
      await sweepAt('2026-04-02 10:30:00')
      expect((await reminderEvents(scene)).map(({ data }) => data.reminder_day)).to.deep.equal([3, 0])
    })

    it('is not sent before the mail server has accepted the mail', async () => {
      await scene.subscribe()
      scene.inbox.behaviour = 'refuse-data'
      await sweepAt('2026-03-29 10:00:00')
      expect(await reminderEvents(scene)).to.deep.equal([])
    })
  })

  describe('once', () => {
    it('a sweep reads of what was sent before no more than an index entry and the reminder', async () => {
      await scene.subscribeMany(20, (number) => `user-${number}@example.com`)
      await sweepAt('2026-03-29 10:00:00')
      const [due, read] = await rowsReadBy(scene.ctx, ({ db, clock }) =>
        listDueSubscriptions(db, {
          scope: 'apps in real time',
          stage: 3,
          now: asAppTime(clock.now()),
          realNow: clock.now(),
          exceptApps: new Set(),
          withFailed: true,
          after: null,
          limit: 100,
        }),
      )
      expect(due).to.be.empty
      expect(read).to.be.within(2 * 20, 2 * 20 + 10)
    })

    /** The mail of `user-1` went to an address that does not exist; the mail server now accepts any other. */
    const refused = async () => {
      await scene.subscribe()
      scene.inbox.behaviour = 'refuse-recipient'
      const summary = await sweepAt('2026-03-29 10:00:00')
      scene.inbox.behaviour = 'accept'
      return summary
    }

    it('a mail that the server refused is not sent once its window has passed', async () => {
      await scene.subscribe()
      scene.inbox.behaviour = 'refuse-data'
      await sweepAt('2026-03-31 09:59:00')
      scene.inbox.behaviour = 'accept'
      await sweepAt('2026-03-31 10:00:00')
      expect(await scene.stages()).to.deep.equal(['1'])
    })

    it('one refused address does not hold up the mails of other customers', async () => {
      await scene.subscribeMany(3, (number) => `user-${number}@example.com`)
      scene.inbox.refusals.set('user-1@example.com', [550, '5.1.1 no such mailbox'])
      expect(await sweepAt('2026-03-29 10:00:00')).to.deep.equal({ ...NOTHING, sent: 2, refused: 1 })
    })

    it('an address that does not exist is tried once per stage, and is listed for operators', async () => {
      expect(await refused()).to.include({ sent: 0, refused: 1 })
      expect(await sweepAt('2026-03-31 09:59:00')).to.deep.equal(NOTHING)
      const [listed] = (await refusedReminders.page(scene.ctx)).rows
      expect(listed).to.deep.include({ external_ref: 'user-1', reminder_day: 3, to: 'an@example.com' })
      expect(listed!.last_error).to.include('no such mailbox')
      const [planned] = await planReminders(scene.ctx, null, 0)
      expect(planned).to.include({ will_send: false, reason: 'address_refused' })
      const [result] = await checkReminders(scene.ctx)
      expect(result!.detail).to.include('1 mail to addresses that the mail server permanently refuses')
      expect(await sweepAt('2026-03-31 10:00:00')).to.include({ sent: 1 })
    })

    it('a mail that is accepted for a copy alone is no mail to the customer: it is tried again, or listed for operators', async () => {
      const copies = { cc_emails: ['boss@example.com'], bcc_emails: [] }
      scene.inbox.refusals.set('grey@example.com', [450, '4.2.0 greylisted, try again later'])
      scene.inbox.refusals.set('wrong@example.com', [550, '5.1.1 no such mailbox'])
      for (const email of scene.inbox.refusals.keys()) {
        const customer = await aCustomer(scene.ctx, scene.seller, { email, ...copies })
        await scene.subscribe({ customer, externalRef: email })
      }
      expect(await sweepAt('2026-03-29 10:00:00')).to.deep.equal({ ...NOTHING, failed: 1, refused: 1 })
      scene.inbox.refusals.clear()
      expect(await retryRefusedReminders(scene.ctx, LINH)).to.equal(1)
      expect(await sweepAt('2026-03-29 10:02:00')).to.deep.equal({ ...NOTHING, sent: 2 })
      const sentTo = scene.inbox.mails.flatMap(({ recipients }) => recipients)
      expect(sentTo).to.have.members(['grey@example.com', 'wrong@example.com', 'boss@example.com', 'boss@example.com'])
    })

    it('a mail to an address that does not exist goes to the customer’s next one, within its stage', async () => {
      await refused()
      const { customerId } = await scene.subscription()
      const change = (input: object) =>
        perform(scene.ctx, SERVER, updateCustomer, input, { app: scene.seller.app, customerId: customerId! })
      await change({ name: 'An Nguyen' })
      expect(await sweep()).to.deep.equal(NOTHING)
      await change({ email: 'an@right.example' })
      expect((await refusedReminders.page(scene.ctx)).rows).to.deep.equal([])
      expect((await planReminders(scene.ctx, null, 0))[0]).to.include({ will_send: true, reason: null })
      expect((await Promise.all([sweep(), sweep()])).map(({ sent }) => sent).sort()).to.deep.equal([0, 1])
      expect(scene.inbox.mails.map(({ recipients }) => recipients)).to.deep.equal([['an@right.example']])
    })

    it('a mail to an address that does not exist goes to another customer who is attached', async () => {
      await refused()
      const bo = await aCustomer(scene.ctx, scene.seller, { email: 'bo@example.com' })
      await attachCustomer(scene.ctx, 'tester', scene.seller.app, bo.id)
      expect(await sweep()).to.include({ sent: 1 })
    })

    for (const [code, text, outcome] of [
      [550, '5.1.1 no such user', 'refused'],
      [553, 'mailbox name not allowed', 'refused'],
      [550, '5.2.1 mailbox disabled', 'refused'],
      [554, '5.7.1 relay access denied', 'failed'],
      [550, '5.7.26 unauthenticated mail is prohibited', 'failed'],
      [552, '5.2.2 mailbox full', 'failed'],
      [550, '5.1.8 sender domain not found', 'failed'],
      [554, 'go away', 'failed'],
      [450, '4.2.1 greylisted', 'failed'],
    ] as const) {
      it(`a recipient that is answered "${code} ${text}" is ${outcome}`, async () => {
        await scene.subscribe()
        Object.assign(scene.inbox, { behaviour: 'refuse-recipient', refusal: [code, text] })
        expect(await sweepAt('2026-03-29 10:00:00')).to.deep.equal({ ...NOTHING, [outcome]: 1 })
        scene.ctx.clock.advance('1m')
        expect(await sweep()).to.deep.equal(outcome === 'failed' ? { ...NOTHING, failed: 1 } : NOTHING)
      })
    }

    it('an operator can record that an unconfirmed mail left, and its event goes out', async () => {
      await scene.subscribe()
      scene.inbox.behaviour = 'lose-answer'
      await sweepAt('2026-03-29 10:00:00')
      scene.ctx.clock.advance('1h')
      const [unconfirmed] = (await unconfirmedReminders.page(scene.ctx)).rows
      expect(await reminderEvents(scene)).to.deep.equal([])
      await settle(unconfirmed!.reminder_id, 'sent')
      expect((await unconfirmedReminders.page(scene.ctx)).rows).to.deep.equal([])
      expect((await reminderEvents(scene)).map(({ data }) => data.reminder_day)).to.deep.equal([3])
    })

    it('those to addresses that do not exist are listed page by page, and all are tried again when an operator says so', async () => {
      await scene.subscribeMany(3)
      scene.inbox.behaviour = 'refuse-recipient'
      await sweepAt('2026-03-29 10:00:00')
      scene.inbox.behaviour = 'accept'
      const first = await refusedReminders.page(scene.ctx, { limit: '2' })
      const rest = await refusedReminders.page(scene.ctx, { limit: '2', cursor: first.nextCursor })
      const listed = [...first.rows, ...rest.rows].map((row) => row.external_ref)
      expect(listed).to.deep.equal(['user-3', 'user-2', 'user-1'])
      expect(await refusedReminders.count(scene.ctx)).to.equal(3)
      expect(await retryRefusedReminders(scene.ctx, LINH)).to.equal(3)
      const [audited] = await listAuditEntries(scene.ctx.db, { limit: 1 })
      expect(audited).to.include({ actor: 'linh', action: 'reminder.retry' })
      expect(await refusedReminders.count(scene.ctx)).to.equal(0)
      expect(await sweep()).to.include({ sent: 3 })
      expect(await retryRefusedReminders(scene.ctx, LINH)).to.equal(0)
    })

    it('a mail server that is dead for an hour loses nothing and doubles nothing', async () => {
      await scene.subscribeMany(12)
      await scene.inbox.stop()
      scene.ctx.clock.set('2026-03-29 10:00:00')
      for (let minute = 0; minute < 60; minute += 5) {
        expect(await sweep()).to.include({ sent: 0, unconfirmed: 0 })
        scene.ctx.clock.advance('5m')
      }
      await scene.inbox.start()
      expect(await sweep()).to.include({ sent: 12, failed: 0 })
      expect(await sweep()).to.include({ sent: 0 })
      expect(new Set(scene.inbox.messageIds).size).to.equal(12)
      expect(scene.inbox.mails).to.have.lengthOf(12)
    })

    it('a sweep that is stopped finishes the mails under way and starts no other', async () => {
      await scene.subscribeMany(20)
      scene.ctx.clock.set('2026-03-29 10:00:00')
      const stopping = new AbortController()
      scene.inbox.beforeAnswer = () => {
        stopping.abort()
        return Promise.resolve()
      }
      const { sent } = await sendDueReminders(scene.ctx, { signal: stopping.signal })
      expect(sent).to.equal(scene.inbox.mails.length).and.to.be.within(1, 5)
      scene.inbox.beforeAnswer = null
      expect((await sweep()).sent).to.equal(20 - sent)
    })
  })
})
