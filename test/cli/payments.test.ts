import { perform } from '#commands/perform.ts'
import { operator } from '#commands/caller.ts'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { setRealtime } from '#apps/set-realtime.ts'
import { getApp } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { reminders } from '#mails/reminders/store.ts'
import { plans } from '#plans/store.ts'
import { events } from '#webhooks/store.ts'
import { realTimeContext } from '../support/context.ts'
import { aCheckout, anApp, aPlan, aSubscription, aWrongEnd, paid, priceId } from '../support/factories.ts'
import { Receiver } from '../support/receiver.ts'
import { startRealtimePeer } from '../support/realtime-peer.ts'
import { aServiceAccountFile } from '../support/service-account.ts'
import { itRunsEveryForm } from './forms.ts'
import { errorIn, openCli, type Cli } from './run-cli.ts'
import { aBankMail, anUnconfirmedReceipt, anUnconfirmedReminder, unmatchedMoney } from './states.ts'

describe('the command line: payments, webhooks, mails and realtime nodes', () => {
  let cli: Cli
  let ctx: Context
  const stops: (() => Promise<void>)[] = []

  beforeEach(() => {
    cli = openCli()
    // The program's clock is the machine's.
    ctx = realTimeContext()
  })

  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop()
  })

  it('matches money without a code, and shows and resolves the flagged transaction', async () => {
    const app = await anApp(ctx)
    const { transaction, mail } = await unmatchedMoney(ctx, app, 90_000)
    const { value: mails, text: waiting } = await cli.both(['bank-mail', 'list', '--unmatched'])
    expect(mails).to.have.length(1)
    expect(mails[0]).to.have.all.keys(
      ...[
        'id',
        'app_id',
        'sandbox',
        'received_at',
        'message_id',
        'bank',
        'amount',
        'transfer_code',
        'status',
        'reason',
        'review',
      ],
      ...['transaction_id', 'suggestions'],
    )
    expect(mails[0]!.suggestions[0]).to.include({ transaction_id: transaction, amount_due: 99_000 })
    expect(waiting).to.include('ACB')
    await cli.expectErrors(
      [2, ['bank-mail', 'match', String(mail), String(transaction)], '--note'],
      [2, ['bank-mail', 'match', 'x', '1', '--note', 'n'], '<id>'],
      [1, ['bank-mail', 'match', '999', '1', '--note', 'n'], 'billing-cli bank-mail list'],
    )
    const match = ['bank-mail', 'match', String(mail), String(transaction), '--note', 'the payer called']
    const booked = { id: mail, bank_mail_id: mail, transaction_id: transaction, status: 'underpaid' }
    const planned = await cli.preview([...match.slice(0, 4)])
    const planText = await cli.table([...match.slice(0, 4), '--dry-run'])
    expect(planned).to.deep.equal({
      ...booked,
      dry_run: true,
      effects: [
        `₫90,000 from ACB is booked for transaction ${transaction} of user-1`,
        'the transaction then has ₫90,000 of ₫99,000: flagged underpaid',
      ],
    })
    expect(planText).to.match(/^\[TEST\] Reader \(app \d+\)\nwithout --dry-run, this happens:\n- ₫90,000 from ACB/)
    expect((await cli.json(['bank-mail', 'list', '--unmatched']))[0]!.suggestions).to.deep.equal(mails[0]!.suggestions)
    expect(await cli.json(match)).to.deep.equal(booked)
    expect(await cli.refused(match)).to.include('waits for a match')
    expect(await cli.table(['bank-mail', 'list', '--unmatched'])).to.include('No money waits')

    const id = String(transaction)
    const { value: flagged, text: list } = await cli.both(['transaction', 'list', '--flagged'])
    expect(flagged).to.have.length(1)
    expect(flagged[0]).to.include({ transaction_id: transaction, flagged: true, flag_reason: 'underpaid' })
    expect(flagged[0], 'whose it is').to.include({ app_id: app.app.id, sandbox: true })
    expect(list).to.include('underpaid').and.include('₫90,000 of').and.include('[TEST]')
    expect(await cli.json(['transaction', 'list', '--app', String(app.app.id), '--status', 'completed'])).to.deep.equal(
      [],
    )
    const { value: details, text: table } = await cli.both(['transaction', 'show', id])
    expect(details).to.include({ transaction_id: transaction, amount_received: 90_000, status: 'pending' })
    expect(details.app).to.include({ sandbox: true })
    expect(details.timeline.map(({ part }: { part: string }) => part)).to.include.members([
      'checkout',
      'money',
      'effect',
    ])
    expect(table).to.include('[TEST] Reader').and.include('flagged underpaid')

    const complete = ['transaction', 'resolve', id, '--action', 'complete']
    const preview = await cli.preview(complete)
    const would = await cli.table([...complete, '--dry-run'])
    expect(preview).to.include({ transaction_id: transaction, dry_run: true, status: 'pending' })
    expect(would).to.match(/^\[TEST\] .+\nwithout --dry-run, this happens:\n- /)
    expect(await cli.misused(complete)).to.include('--note')
    await cli.expectErrors(
      [2, ['transaction', 'resolve', id, '--action', 'keep', '--note', 'n'], '--action'],
      [2, ['transaction', 'resolve', id, '--note', 'n'], '--action'],
    )
    expect(await cli.json([...complete, '--note', 'fee of the bank'])).to.include({
      status: 'completed',
      flagged: false,
    })
    await cli.expectErrors(
      [1, [...complete, '--note', 'again'], `transaction ${id}`],
      [1, ['transaction', 'show', '999'], 'billing-cli transaction list'],
    )
    expect(JSON.stringify(await cli.json(['audit', 'list']))).to.include('fee of the bank')
    const more = await aBankMail(ctx, { bank: 'ACB', bankReference: 'FT-more', amount: 5000, review: 'credit' })
    expect(await cli.json(['bank-mail', 'match', String(more), id, '--dry-run'])).to.deep.include({
      status: 'already_completed',
      effects: [
        `₫5,000 from ACB is booked for transaction ${id} of user-1`,
        'the transaction is completed already: flagged, because money arrived twice',
      ],
    })
    expect(await cli.json(['ledger', 'verify'])).to.deep.equal({ checked: 1, faults: [] })
  })

  it('says what matched money has done for the person, and tells it in words later', async () => {
    const app = await anApp(ctx)
    const { transaction, mail } = await unmatchedMoney(ctx, app, 99_000)
    const note = ['--note', 'the payer called']
    const plan = (await ctx.db.one(plans, 'WHERE app_id = ?', [app.app.id]))!
    const matched = await cli.table(['bank-mail', 'match', String(mail), String(transaction), ...note])
    const { current_period_end: end } = await cli.json(['subscription', 'show', String(app.app.id), 'user-1'])
    expect(matched).to.equal(`user-1 has ${plan.name} until ${end!.slice(0, 10)}\n`)
    const timeline = await cli.table(['transaction', 'show', String(transaction)])
    expect(timeline.replaceAll(/\s+/g, ' '))
      .to.include('bank e-mail received and booked')
      .and.include('not sent (the app has no webhook URL)')
      .and.not.match(/: applied|not_configured|bank_mail\./)
    const other = await unmatchedMoney(ctx, app, 90_000)
    expect(await cli.table(['bank-mail', 'match', String(other.mail), String(other.transaction), ...note])).to.equal(
      `transaction ${other.transaction} of user-1 has ₫90,000 of ₫99,000\n`,
    )
  })

  it('moves money that came with the code of last month, refunds a part, and closes a payment', async () => {
    const app = await anApp(ctx)
    const { transaction: last, mail } = await unmatchedMoney(ctx, app, 99_000)
    const next = await unmatchedMoney(ctx, app, 99_000)
    for (const each of [mail, next.mail])
      await cli.json(['bank-mail', 'match', String(each), String(last), '--note', 'same code'])
    const { value: waiting, text } = await cli.both(['payment', 'list', '--unallocated'])
    expect(waiting).to.have.lengthOf(1)
    expect(waiting[0]).to.have.all.keys(
      ...[
        'payment_id',
        'app_id',
        'sandbox',
        'provider_code',
        'reference',
        'amount',
        'amount_left',
        'currency',
        'paid_at',
      ],
      ...['received_at', 'closed_at', 'external_ref', 'transaction_id', 'amount_unapplied', 'reason'],
    )
    expect(waiting[0]).to.include({
      transaction_id: last,
      amount_unapplied: 99_000,
      amount_left: 0,
      reason: 'duplicate_payment',
    })
    expect(text).to.match(/duplicate/)
    const id = String(waiting[0]!.payment_id)
    const move = ['payment', 'move', id, String(next.transaction)]
    await cli.expectErrors(
      [2, move, '--note'],
      [2, ['payment', 'move', id, '--note', 'n'], '<transaction_id>'],
      [2, ['payment', 'move', 'x', '1', '--note', 'n'], '<payment_id>'],
      [1, ['payment', 'move', '9999', '1', '--note', 'n'], 'payment 9999'],
      [1, ['payment', 'close', id, '--note', 'n'], 'transaction resolve'],
      [1, ['payment', 'refund', id, '--note', 'n'], 'transaction resolve'],
    )
    const planned = await cli.preview([...move, '--note', 'old code'])
    expect(planned.changes[0]).to.deep.include({ action: 'payment.move', subject: `payment ${id}` })
    expect(await cli.json([...move, '--note', 'old code'])).to.deep.equal({
      payment_id: Number(id),
      transaction_id: next.transaction,
      amount: 99_000,
      status: 'processed',
    })
    expect(await cli.refused([...move, '--note', 'again'])).to.include('may be moved')
    expect(await cli.table(['payment', 'list', '--unallocated'])).to.include('No money needs review')
    const { value: shown, text: table } = await cli.both(['payment', 'show', id])
    expect(
      shown.allocations.map(({ transaction_id, amount, cause, note }) => [transaction_id, amount, cause, note]),
    ).to.deep.equal([
      [last, 99_000, 'matched', 'same code'],
      [last, -99_000, 'moved', 'old code'],
      [next.transaction, 99_000, 'moved', 'old code'],
    ])
    expect(table).to.include('old code')
    const details = await cli.table(['transaction', 'show', String(last)])
    expect(details).to.include('flag duplicate_payment').and.include('old code')

    const resolve = ['transaction', 'resolve', String(next.transaction), '--action', 'refund', '--note', 'n'] as const
    const part = [...resolve, '--amount', '30000', '--reference', 'FT-PART'] as const
    await cli.expectErrors(
      [2, [...resolve, '--amount', 'x'], '--amount'],
      [1, [...resolve, '--amount', '99001', '--reference', 'F'], 'only ₫99,000'],
      [2, [...resolve.slice(0, 4), 'dismiss', '--note', 'n', '--amount', '5'], '--amount'],
    )
    const preview = await cli.preview(part)
    expect(preview.effects).to.deep.equal([
      '₫30,000 by bank_transfer is recorded as refunded manually (FT-PART)',
      'the period that was paid for stays',
    ])
    const refunded = await cli.json(part)
    expect(refunded).to.include({ status: 'completed', amount_received: 99_000 })
    expect(refunded.refunds).to.deep.equal([
      { refund_id: refunded.refunds[0]!.refund_id, amount: 30_000, status: 'succeeded', reference: 'FT-PART' },
    ])
    expect(await cli.table([...resolve, '--amount', '69000', '--reference', 'FT-REST'])).to.include('is refunded')

    await aBankMail(ctx, { bank: 'ACB', review: 'not_understood' })
    const [unknown] = await cli.json(['payment', 'list', '--unallocated'])
    expect(unknown).to.include({ amount: null, amount_unapplied: null, reason: 'unmatched' })
    expect(await cli.table(['payment', 'list', '--app', String(app.app.id)])).to.include('bank_transfer')
    const refund = ['payment', 'refund', String(unknown!.payment_id), '--note', 'n']
    await cli.expectErrors([1, refund, 'amount'], [1, [...refund, '--amount', '500'], 'reference'])
    expect(await cli.json([...refund, '--amount', '500', '--reference', 'FT-BACK'])).to.include({ status: 'succeeded' })
    await aBankMail(ctx, { bank: 'ACB', bankReference: 'gift', amount: 800, review: 'credit' })
    const [gift] = await cli.json(['payment', 'list', '--unallocated'])
    const giftRefund = ['payment', 'refund', String(gift!.payment_id), '--note', 'n']
    expect(await cli.table([...giftRefund, '--amount', '300', '--reference', 'F'])).to.include('succeeded')
    const close = ['payment', 'close', String(gift!.payment_id), '--note', 'a gift'] as const
    expect((await cli.json(close)).closed_at).to.match(/^20/)
    expect(await cli.refused(close)).to.include('was closed')
    await aBankMail(ctx, { bank: 'ACB', bankReference: 'more', amount: 100, review: 'credit' })
    const [remainder] = await cli.json(['payment', 'list', '--unallocated'])
    expect(await cli.table(['payment', 'close', String(remainder!.payment_id), '--note', 'n'])).to.include('is closed')
    const again = await cli.table([
      'payment',
      'move',
      String(remainder!.payment_id),
      String(last),
      '--note',
      'not a gift',
    ])
    expect(again).to.include('is completed, and flagged duplicate_payment')
    expect(await cli.json(['bank-mail', 'list', '--unmatched'])).to.deep.equal([])
    expect((await cli.json(['ledger', 'verify'])).faults).to.deep.equal([])
  })

  it('books an unreadable bank mail with the amount that an operator gives, and closes one without money', async () => {
    const app = await anApp(ctx)
    const { transaction, mail: money } = await unmatchedMoney(ctx, app, 99_000)
    const odd = { bank: 'ACB', review: 'not_understood', messageId: '<odd@acb.com.vn>' } as const
    const [mail, news] = [await aBankMail(ctx, odd), await aBankMail(ctx, odd)]
    const { value: waiting, text } = await cli.both(['bank-mail', 'list', '--unmatched'])
    const listed = waiting.find((row: { id: number }) => row.id === mail)
    expect(listed).to.deep.include({
      message_id: '<odd@acb.com.vn>',
      amount: null,
      status: 'ignored',
      reason: 'no_transfer_code',
      review: 'not_understood',
      suggestions: [],
    })
    expect(text).to.include('unclear').and.include('money')
    const some = await cli.run(['bank-mail', 'list', '--unmatched', '--limit', '2'])
    expect(some.stderr).to.include('Showing 2; see more with --cursor')
    expect(some.stdout).not.to.include('money')

    const match = ['bank-mail', 'match', String(mail), String(transaction), '--note', 'on the statement']
    await cli.expectErrors(
      [2, match, '--amount'],
      [2, [...match, '--amount', '9x'], '--amount'],
      [2, [...match.slice(0, 4), '--dry-run'], '--amount'],
      [2, [...match, '--amount', '0'], '--amount'],
      [1, [...match, '--amount', '99999999999999'], 'error: --amount: must be at most'],
      [1, ['bank-mail', 'match', String(money), ...match.slice(3), '--amount', '5'], 'error: --amount: is refused'],
      [2, ['bank-mail', 'list', '--limit', 'x'], '--limit'],
    )
    const planned = await cli.preview([...match.slice(0, 4), '--amount', '99000'])
    expect(planned.effects[0]).to.include("check the account's statement first")
    expect(await cli.json([...match, '--amount', '99000'])).to.include({ status: 'processed' })

    const close = ['bank-mail', 'close', String(news), '--note', 'news of the bank']
    const plan = await cli.preview([...close.slice(0, 3)])
    const would = await cli.table([...close.slice(0, 3), '--dry-run'])
    expect(plan).to.deep.include({ id: news, bank_mail_id: news, status: 'closed', dry_run: true })
    expect(plan.effects).to.have.lengthOf(1)
    expect(would).to.match(/^without --dry-run, this happens:\n- /)
    await cli.expectErrors(
      [2, close.slice(0, 3), '--note'],
      [2, ['bank-mail', 'close', 'x', '--note', 'n'], '<id>'],
      [1, ['bank-mail', 'close', '999', '--note', 'n'], 'billing-cli bank-mail list'],
    )
    expect(await cli.json(close)).to.deep.equal({ id: news, bank_mail_id: news, status: 'closed' })
    expect(await cli.refused(close)).to.include('was closed')
    expect(await cli.refused(['bank-mail', 'match', String(news), String(transaction), '--note', 'n'])).to.include(
      'was closed',
    )
    expect(await cli.table(['bank-mail', 'close', String(money), '--note', 'a gift'])).to.include('is closed')
    expect(await cli.table(['bank-mail', 'list', '--unmatched'])).to.include('No money waits')
    expect(JSON.stringify(await cli.json(['audit', 'list'])))
      .to.include('bank-mail.close')
      .and.include('a gift')
  })

  it('shows the confirmation that a mail provider asks for before it forwards a mailbox', async () => {
    const link = 'https://mail-settings.google.com/mail/vf-%5Babc%5D-def'
    const mail = await aBankMail(ctx, {
      reason: 'not_bank_email',
      forwarding: { mailbox: 's…@gmail.com', code: '123456789', link },
    })
    const { value, text } = await cli.both(['bank-mail', 'forwarding'])
    expect(value).to.deep.equal([
      {
        id: mail,
        received_at: value[0]!.received_at,
        bank_account_id: null,
        mailbox: 's…@gmail.com',
        code: '123456789',
        link,
      },
    ])
    expect(text).to.include('123456789').and.include(`\n${link}\n`)
  })

  it('records a manual refund, and dismisses a flag', async () => {
    const app = await anApp(ctx)
    const { transaction, mail } = await unmatchedMoney(ctx, app, 80_000)
    await cli.table(['bank-mail', 'match', String(mail), String(transaction), '--note', 'n', '--yes'])
    const refund = ['transaction', 'resolve', String(transaction), '--action', 'refund', '--note', 'n']
    expect(await cli.refused(refund)).to.include('reference')
    expect(await cli.table([...refund, '--reference', 'FT26123'])).to.include('is refunded, not flagged')
    const other = await unmatchedMoney(ctx, app, 70_000)
    await cli.json(['bank-mail', 'match', String(other.mail), String(other.transaction), '--note', 'n'])
    const dismiss = ['transaction', 'resolve', String(other.transaction), '--action', 'dismiss', '--note', 'a gift']
    expect(await cli.json(dismiss)).to.include({ status: 'pending', flagged: false })
  })

  it('reports discrepancies of the ledger, and exits 1', async () => {
    const app = await anApp(ctx)
    await aSubscription(ctx, app, await aPlan(ctx, app))
    expect(await cli.table(['ledger', 'verify', '--app', String(app.app.id)])).to.include(
      '1 subscription checked, 0 discrepancies',
    )
    await aWrongEnd(ctx, app)
    const [asJson, asTable] = await Promise.all([
      cli.json(['ledger', 'verify'], { code: 1 }),
      cli.run(['ledger', 'verify']),
    ])
    expect(asTable.code).to.equal(1)
    expect(asJson.faults).to.have.length.greaterThan(0)
    expect(asTable.stdout).to.include('1 discrepancy')
  })

  it('lists deliveries, retries events, and tests a receiver', async () => {
    const receiver = await Receiver.start()
    stops.push(() => receiver.stop())
    const app = await anApp(ctx, { webhookUrl: receiver.url })
    const id = String(app.app.id)
    await aSubscription(ctx, app, await aPlan(ctx, app))
    const { value: deliveries, text } = await cli.both(['webhook', 'list', id])
    expect(deliveries.map((row) => [row.event_type, row.delivery_status])).to.deep.equal([
      ['subscription.updated', 'pending'],
    ])
    expect(text).to.include('[TEST] Reader')
    expect(await cli.table(['webhook', 'list', id, '--status', 'failed'])).to.include('no deliveries')
    const event = deliveries[0]!.id
    await ctx.db.update(events, { appId: app.app.id }, { deliveryStatus: 'failed', nextAttemptAt: null })
    expect(await cli.json(['webhook', 'retry', event])).to.include({ id: event, delivery_status: 'pending' })
    await ctx.db.update(events, { appId: app.app.id }, { deliveryStatus: 'failed', nextAttemptAt: null })
    // A test that failed is no loss: its sender has seen the answer.
    const { id: eventId, ...row } = (await ctx.db.one(events, 'WHERE app_id = ?', [app.app.id]))!
    expect(event).to.equal(`evt_${eventId}`)
    await ctx.db.insert(events, { ...row, eventType: 'webhook.test' })
    const would = await cli.preview(['webhook', 'retry', '--failed', id])
    const wouldText = await cli.table(['webhook', 'retry', '--failed', id, '--dry-run'])
    expect(would).to.deep.equal({ dry_run: true, failed: 1 })
    const banner = `[TEST] Reader (app ${id})`
    expect(wouldText).to.equal(`${banner}: 1 event would be due again\n`)
    expect(await cli.table(['webhook', 'retry', event])).to.equal(`${banner}\n${event} is due again\n`)
    await ctx.db.update(events, { id: eventId }, { deliveryStatus: 'failed', nextAttemptAt: null })
    expect(await cli.json(['webhook', 'retry', '--failed', id])).to.deep.equal({ retried: 1 })
    expect(await cli.table(['webhook', 'retry', '--failed', id])).to.equal(`${banner}: due again: 0 events\n`)
    await cli.expectErrors(
      [2, ['webhook', 'retry', event, '--failed', id], 'not both'],
      [2, ['webhook', 'retry'], '<event_id>'],
      [2, ['webhook', 'list', id, '--status', 'lost'], '--status'],
      [1, ['webhook', 'retry', 'evt_999'], 'billing-cli webhook list'],
    )

    expect((await cli.both(['webhook', 'show', event])).text).to.include('no attempt yet')
    const { event_id } = await cli.json(['webhook', 'test', id])
    const { value: shown, text: page } = await cli.both(['webhook', 'show', event_id])
    expect(shown).to.deep.include({ id: event_id, app_id: app.app.id, delivery_status: 'delivered', attempts: 1 })
    expect(shown.payload).to.include({ event_type: 'webhook.test', app_id: app.app.id })
    expect(shown.headers['X-Gateway-Event-Id']).to.equal(event_id)
    expect(shown.tries).to.have.length(1)
    expect(shown.tries[0]).to.include({ attempt: 1, http_status: 200, error: null })
    expect(page).to.include('"event_type": "webhook.test"')
    expect(await cli.refused(['webhook', 'show', 'evt_99999'])).to.include('not found')
    receiver.received.length = 0
    expect(await cli.json(['webhook', 'test', id])).to.include({ delivered: true })
    expect(receiver.received).to.have.length(1)
    receiver.answer = 500
    const failing = await cli.run(['webhook', 'test', id])
    expect([failing.code, failing.stderr]).to.deep.equal([1, 'error: the receiver did not take the event\n'])
    expect(failing.stdout).to.include('500')
    const failed = await cli.run(['webhook', 'test', id, '--json'])
    expect(errorIn(failed).code).to.equal('provider_error')
    expect(failed.stdout).to.include('"delivered":false')
  })

  it('rewrites realtime nodes, and counts those that could not be written', async () => {
    const peer = await startRealtimePeer()
    stops.push(() => peer.stop())
    cli = openCli({ FIREBASE_DATABASE_EMULATOR_HOST: peer.host })
    const app = await anApp(ctx, { auth: 'identity' })
    const database = { databaseUrl: 'https://demo-proj.firebaseio.com', serviceAccount: aServiceAccountFile() }
    const id = String(app.app.id)
    await aSubscription(ctx, app, await aPlan(ctx, app))
    await perform(ctx, operator('tester'), setRealtime, database, { app: await getApp(ctx.db, app.app.id) })
    expect(await cli.json(['realtime', 'resync', id, 'user-1'])).to.deep.equal({ written: 1, failed: 0 })
    expect(await peer.read('users/user-1/subscription/plan')).to.equal('premium')
    expect(await cli.table(['realtime', 'resync', id, '--all', '--dry-run'])).to.include('0 nodes differ')
    expect(await cli.table(['realtime', 'resync', id, '--failed'])).to.include('0 written, 0 failed')
    peer.behaviour = 500
    expect(await cli.json(['realtime', 'resync', id, '--all'], { code: 1 })).to.include({ written: 0, failed: 1 })
    await cli.expectErrors(
      [2, ['realtime', 'resync', id], '--all or --failed'],
      [2, ['realtime', 'resync', id, 'user-1', '--all'], 'exclude each other'],
    )
    const plain = String((await anApp(ctx)).app.id)
    expect(await cli.refused(['realtime', 'resync', plain, '--all'])).to.include('realtime')
  })

  it('settles reminders that may or may not have been sent, and tests the mail server', async () => {
    const app = await anApp(ctx)
    const id = String(await anUnconfirmedReminder(ctx, app))
    const { value, text } = await cli.both(['reminders', 'unconfirmed'])
    expect(value).to.have.length(1)
    expect(value[0]).to.include({ reminder_id: Number(id), external_ref: 'user-1', last_error: 'no answer' })
    expect(text).to.include('user-1')
    expect(await cli.misused(['reminders', 'settle', id])).to.include('--sent')
    expect(await cli.json(['reminders', 'settle', id, '--sent'])).to.deep.equal({
      reminder_id: Number(id),
      outcome: 'sent',
    })
    expect(await cli.refused(['reminders', 'settle', id, '--sent'])).to.include('not unconfirmed')
    await ctx.db.update(reminders, { id: Number(id) }, { status: 'claimed', sentAt: null })
    expect(await cli.table(['reminders', 'settle', id, '--not-sent'])).to.equal(`reminder ${id}: not_sent\n`)
    await cli.expectErrors(
      [2, ['reminders', 'settle', 'x', '--sent'], 'reminders unconfirmed'],
      [1, ['reminders', 'settle', '999', '--sent'], 'reminders unconfirmed'],
      [2, ['reminders', 'plan', '--days', 'x'], '--days'],
    )
    expect(await cli.table(['reminders', 'unconfirmed'])).to.include('none is unconfirmed')
    const refusal = { status: 'refused', refusedTo: 'an@example.com', lastError: '550 no' } as const
    await ctx.db.update(reminders, { id: Number(id) }, refusal)
    const { value: refused, text: refusals } = await cli.both(['reminders', 'refused'])
    expect(refused).to.have.length(1)
    expect(refused[0]).to.include({ reminder_id: Number(id), to: 'an@example.com', last_error: '550 no' })
    expect(refusals).to.include('an@example.com')
    expect(await cli.json(['reminders', 'refused', '--retry'])).to.deep.equal({ retried: 1 })
    expect(await cli.table(['reminders', 'refused'])).to.include('no address is refused')
    const app1 = String(app.app.id)
    const { value: due, text: mails } = await cli.both(['reminders', 'plan', app1, '--days', '40'])
    expect(due[0]).to.include({ external_ref: 'user-1', to: 'an@example.com', will_send: true })
    expect(mails).to.include('an@example.com')
    expect(await cli.table(['reminders', 'plan'])).to.include('no mails are due')

    expect(await cli.json(['mail', 'test', 'me@example.com'])).to.deep.equal({ address: 'me@example.com', sent: true })
    expect(await cli.table(['mail', 'test', 'me@example.com', '--locale', 'vi'])).to.include('written to')
    await cli.expectErrors(
      [1, ['mail', 'test', 'nobody'], 'error: <address>: must be one e-mail address'],
      [2, ['mail', 'test'], '<address>'],
      [2, ['mail', 'test', 'me@example.com', '--locale', 'fr'], '--locale'],
    )
    const unreachable = openCli({ BILLING_SMTP_URL: 'smtp://127.0.0.1:1', BILLING_MAIL_FROM: 'a@example.com' })
    expect(await unreachable.refused(['mail', 'test', 'me@example.com'])).to.include('BILLING_SMTP_URL')
  })

  it('transaction show says by which clock each time is, where the test clock has moved', async () => {
    const app = await anApp(ctx)
    const price = priceId(await aPlan(ctx, app))
    await aSubscription(ctx, app, await aPlan(ctx, app), { external_ref: 'before' })
    const show = async (externalRef: string) => {
      const listed = await cli.json(['transaction', 'list', '--app', String(app.app.id)])
      const { transaction_id: id } = listed.find((row) => row.external_ref === externalRef)!
      return cli.both(['transaction', 'show', String(id)])
    }
    const before = await show('before')
    expect(before.value.app.clock_offset_seconds).to.equal(0)
    expect(before.text)
      .to.match(/at \(UTC\) /)
      .and.not.to.include('test clock')

    await cli.json(['app', 'clock', String(app.app.id), '--advance', '40d'])
    await aCheckout(ctx, { ...app, app: await getApp(ctx.db, app.app.id) }, { external_ref: 'after', price_id: price })
    const { value, text } = await show('after')
    expect(value.app.clock_offset_seconds).to.equal(40 * 86_400)
    const [opened] = value.timeline
    const dayOf = (time: string) => Math.floor(Date.parse(`${time.slice(0, 10)}T00:00:00Z`) / 86_400_000)
    const [, until = ''] = /link until (\S+ \S+) UTC \(test clock\)/.exec(opened!.text) ?? []
    expect(dayOf(until) - dayOf(opened!.at)).to.be.within(39, 41)
    expect(text)
      .to.match(/^created_at +\S+ \S+ UTC \(test clock\)$/m)
      .and.match(/at \(real time, UTC\) /)
    expect((await show('before')).text).to.match(/period started: none →\s+\S+ \S+\s+UTC\s+\(test\s+clock\)/)
  })

  it('settles receipts that may or may not have been sent, and shows them in the timeline', async () => {
    const app = await anApp(ctx)
    const { transaction_id: transaction } = await paid(ctx, app, { price_id: priceId(await aPlan(ctx, app)) })
    const id = String(await anUnconfirmedReceipt(ctx, app))
    const { value, text } = await cli.both(['receipts', 'unconfirmed'])
    expect(value).to.have.length(1)
    expect(value[0]).to.deep.include({
      ...{ receipt_id: Number(id), transaction_id: transaction, external_ref: 'user-1', kind: 'received' },
      ...{ amount: 99_000, currency: 'VND', last_error: 'no answer' },
    })
    expect(text).to.include('₫99,000').and.include('received')
    const mails = async (): Promise<string[]> => {
      const { timeline } = await cli.json(['transaction', 'show', String(transaction)])
      return timeline.flatMap(({ part, text: line }: { part: string; text: string }) => (part === 'mail' ? [line] : []))
    }
    expect(await mails()).to.deep.equal([`receipt ${id} of ₫99,000 received: unconfirmed`])
    expect(await cli.misused(['receipts', 'settle', id])).to.include('--sent')
    expect(await cli.json(['receipts', 'settle', id, '--sent'])).to.deep.equal({
      ...{ receipt_id: Number(id), outcome: 'sent' },
    })
    expect(await mails()).to.deep.equal([`receipt ${id} of ₫99,000 received: sent`])
    expect(await cli.table(['receipts', 'unconfirmed'])).to.include('none is unconfirmed')
    expect(await cli.refused(['receipts', 'settle', id, '--not-sent'])).to.include('not unconfirmed')
    expect(
      await cli.table(['receipts', 'settle', String(await anUnconfirmedReceipt(ctx, await paidApp())), '--not-sent']),
    ).to.match(/^receipt \d+: not_sent\n$/)
    await cli.expectErrors(
      [2, ['receipts', 'settle', 'x', '--sent'], 'receipts unconfirmed'],
      [1, ['receipts', 'settle', '999', '--sent'], 'receipts unconfirmed'],
    )
    async function paidApp() {
      const other = await anApp(ctx)
      await paid(ctx, other, { price_id: priceId(await aPlan(ctx, other)) })
      return other
    }
  })

  it('reconcile looks up pending payments', async () => {
    const app = await anApp(ctx)
    await paid(ctx, app, { price_id: priceId(await aPlan(ctx, app)) })
    const { value, text } = await cli.both(['reconcile', '--app', String(app.app.id)])
    expect(value).to.deep.equal({ looked_up: 0, paid: 0, closed: 0, still_open: 0, failed: 0 })
    expect(text).to.include('0 looked up')
  })

  itRunsEveryForm('payments.test.ts')
})
