import { PassThrough } from 'node:stream'
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { columnsOf, fitted } from '#cli/columns.ts'
import { drawConsole, helpLines } from '#cli/console/draw.ts'
import { keysIn } from '#cli/console/keys.ts'
import type { Screen } from '#cli/console/pages.ts'
import { runLine } from '#cli/console/run-line.ts'
import { bankMails } from '#bank-mail/store.ts'
import { auditLog } from '#commands/store.ts'
import type { Context } from '#context.ts'
import { customers } from '#customers/store.ts'
import { refunds } from '#payments/store.ts'
import { readReview, type ReviewItem } from '#review/read-review.ts'
import { DAY_MS, addMs } from '#shared/time.ts'
import { events } from '#webhooks/store.ts'
import { realTimeContext } from '../support/context.ts'
import { testDatabase } from '../support/database.ts'
import { aCustomer, anApp, aPlan, partlyPaid, priceId } from '../support/factories.ts'
import { insertMany, rowsLike } from '../support/many-rows.ts'
import { endPauses, flaggedOf, oneOfEachKind } from '../support/review.ts'
import { shownOn } from '../support/screen.ts'
import { itRunsEveryForm } from './forms.ts'
import { openCli, type Cli } from './run-cli.ts'
import { within } from './run-here.ts'
import { CTRL_C, DOWN, ENTER, onTerminal, type Step } from './terminal.ts'
import { processorMs } from '../support/processor-time.ts'

const ESCAPE = '\u001b'
const SCREEN_LEFT = '\u001b[?1049l'

describe('console', () => {
  let cli: Cli
  let ctx: Context

  beforeEach(() => {
    cli = openCli()
    ctx = realTimeContext()
  })

  /** The newest first. */
  const audited = () => testDatabase().db.all(auditLog, 'ORDER BY id DESC')

  /** The last frame before the console was left. */
  const lastFrame = async (raw: string): Promise<string[]> =>
    (await shownOn(80, raw.slice(0, raw.lastIndexOf(SCREEN_LEFT)), 24)).map(({ text }) => text)

  /** How a person at the keys decides a case of each kind. */
  const KEYS: Partial<Record<ReviewItem['kind'], readonly Step[]>> = {
    unapplied_payment: [
      ['r refund', 'r'],
      ['reference of your transfer: ', `FT-OUT-1${ENTER}`],
    ],
    unmatched_bank_mail: [['may be meant for', 'm']],
    unreadable_bank_mail: [['d dismiss', 'd']],
    unconfirmed_mail: [['s sent', 's']],
    failed_webhook: [['t try again', 't']],
    refused_address: [['t try all again', 't']],
  }
  /** Those of the flagged payments, the oldest first. */
  const FLAGGED: readonly (readonly Step[])[] = [
    [['c complete', 'c']],
    [['d dismiss', 'd']],
    [
      ['r refund', 'r'],
      ['reference of your transfer: ', `FT-OUT-2${ENTER}`],
    ],
  ]

  it('a person decides ten mixed cases without typing an id: each is the command of the command line, with its note', async () => {
    const sandbox = await oneOfEachKind(ctx)
    await endPauses(ctx)
    const live = await anApp(ctx, { name: 'Live', sandbox: false })
    const plan = await aPlan(ctx, live)
    await partlyPaid(ctx, live, { external_ref: 'user-1', price_id: priceId(plan) }, 'of user-1')
    const items = await readReview(ctx, null)
    expect(items).to.have.length(9)
    expect(new Set(items.map(({ kind }) => kind)).size).to.equal(7)
    // The payment that the unmatched money is for was superseded meanwhile: it is a tenth case.
    const kinds = [...items.map(({ kind }) => kind), 'flagged_payment'] as const
    const flagged = [...FLAGGED]
    const notes = kinds.map((_, index) => `why ${index}: "payer" called for $5`)
    const steps = kinds.flatMap((kind, index): Step[] => [
      [index === 0 ? '9 to review' : 'done: ', ENTER],
      ...(KEYS[kind] ?? flagged.shift() ?? []),
      ['y confirm', 'y'],
      ['note: ', `${notes[index]}${ENTER}`],
    ])
    const typed = steps.map(([, keys]) => keys).filter((keys) => !keys.startsWith('why ') && !keys.startsWith('FT-OUT'))
    expect(typed.join('')).not.to.match(/\d/)
    const session = await onTerminal(cli.env, ['console', '--write'], [...steps, ['nothing needs review', 'q']])
    expect([session.code, session.left], session.text).to.deep.equal([0, []])
    expect(await readReview(ctx, null)).to.deep.equal([])
    expect(await ctx.db.count(bankMails, 'WHERE app_id = ? AND transaction_id IS NOT NULL', [sandbox.app.id])).to.equal(
      1,
    )
    const kept = (await audited()).flatMap(({ reason }) => reason ?? [])
    expect(kept.filter((reason) => reason.startsWith('why ')).sort()).to.deep.equal(notes.toSorted())
  }).timeout(600_000)

  it('a connection that is lost before the note changes nothing, and after it the whole command and its note are done', async () => {
    await oneOfEachKind(ctx)
    await ctx.db.update(events, { deliveryStatus: 'failed' }, { writtenAt: addMs(ctx.clock.now(), -DAY_MS) })
    const before = await audited()
    const opened: Step[] = [
      ['9 to review', ENTER],
      ['t try again', 't'],
    ]
    const written: Step[] = [...opened, ['y confirm', 'y'], ['note: ', 'their server is back']]
    const early = [
      [...opened, ['y confirm', null]],
      [...written, ['server is back', null]],
    ] as const
    for (const steps of early) {
      const lost = await onTerminal(cli.env, ['console', '--write'], steps)
      expect(lost.left, lost.text).to.deep.equal([])
      expect(await audited()).to.deep.equal(before)
      expect(await readReview(ctx, null)).to.have.length(9)
    }
    const enter: Step = ['server is back', ENTER]
    const late = await onTerminal(cli.env, ['console', '--write'], [...written, enter, ['working', null]])
    expect(late.left, late.text).to.deep.equal([])
    expect((await audited()).slice(0, 2).map(({ action, reason }) => [action, reason])).to.deep.equal([
      ['review.note', 'their server is back'],
      ['webhook.retry', null],
    ])
    expect(await readReview(ctx, null)).to.have.length(8)
  })

  it('confirms nothing without a note, and nothing at all unless it writes', async () => {
    const app = await anApp(ctx, { name: 'Live', sandbox: false })
    await partlyPaid(ctx, app, { external_ref: 'user-1', price_id: priceId(await aPlan(ctx, app)) })
    const silent = await onTerminal(
      cli.env,
      ['console', '--write'],
      [
        ['1 to review', ENTER],
        ['d dismiss', 'd'],
        ['y confirm', 'y'],
        ['note: ', `   ${ENTER}`],
        ['a note is needed', 'q'],
      ],
    )
    expect([silent.code, silent.left], silent.text).to.deep.equal([0, []])
    const reading = await onTerminal(
      cli.env,
      ['console'],
      [
        ['1 to review', ENTER],
        ['d dismiss', 'd'],
        ['read only: console --write confirms', 'y'],
        ['start the console with --write', ESCAPE],
        ['d dismiss', ':'],
        [':', `transaction resolve 1 --action dismiss --note x${ENTER}`],
        ['This console only reads', ESCAPE],
        ['d dismiss', 'q'],
      ],
    )
    expect([reading.code, reading.left], reading.text).to.deep.equal([0, []])
    expect(reading.text).to.include('without --dry-run, this happens')
    expect(await readReview(ctx, null)).to.have.length(1)
  })

  it('does nothing about a case that was decided since it was opened', async () => {
    const app = await anApp(ctx, { name: 'Live', sandbox: false })
    await partlyPaid(ctx, app, { external_ref: 'user-1', price_id: priceId(await aPlan(ctx, app)) })
    const [item] = await readReview(ctx, null)
    const session = await onTerminal(
      cli.env,
      ['console', '--write'],
      [
        ['1 to review', ENTER],
        ['r refund', 'r'],
        ['reference of your transfer: ', `FT-OUT-1${ENTER}`],
        ['y confirm', ':'],
        [':', `transaction resolve ${item!.id} --action complete --note "as another operator"${ENTER}`],
        ['is completed', ESCAPE],
        ['y confirm', 'y'],
        ['note: ', `asked for it${ENTER}`],
        ['the case has changed since it was opened', 'q'],
      ],
    )
    expect([session.code, session.left], session.text).to.deep.equal([0, []])
    expect(await ctx.db.count(refunds, '')).to.equal(0)
  })

  it('finds, completes commands, names its keys, goes back, and leaves the screen as it was', async () => {
    const flagged = await flaggedOf(ctx, await oneOfEachKind(ctx))
    const session = await onTerminal(
      cli.env,
      ['console'],
      [
        ['9 to review', '?'],
        ['q quit', ESCAPE],
        ['9 to review', '/'],
        ['/', `user-9${ENTER}`],
        ['scroll  esc back', ESCAPE],
        ['9 to review', ':'],
        [':', 'transac\t'],
        [':transaction ', `sh\t`],
        [':transaction show ', `${flagged}${ENTER}`],
        ['scroll  esc back', ESCAPE],
        ['9 to review', `${DOWN}${DOWN}kk${ENTER}`],
        ['s sent', ESCAPE],
        ['9 to review', CTRL_C],
      ],
    )
    expect([session.code, session.left], session.text).to.deep.equal([0, []])
    const help = session.text
    for (const keys of ['d dismiss', 'c complete', 'r refund', 't try again', 's sent', 'n not sent', 'y confirm'])
      expect(help).to.include(keys)
    expect(
      helpLines().filter((line) => columnsOf(line) > 80),
      'lines that 80 columns cut',
    ).to.deep.equal([])
    expect(session.text, 'it ended without an exit code beside its name').to.match(
      RegExp(`transaction show ${flagged} {10}`),
    )
    expect((await lastFrame(session.raw)).join('\n')).to.include('enter open')
  })

  it('a mail that is settled keeps its note in the audit log, by who decided it', async () => {
    await oneOfEachKind(ctx)
    await cli.json(['operator', 'add', 'linh', '--role', 'support'])
    const session = await onTerminal(
      cli.env,
      ['as', 'linh'],
      [
        ['WRITE, linh (support)', ENTER],
        ['s sent', 's'],
        ['y confirm', 'y'],
        ['note: ', `the log shows it${ENTER}`],
        ['done:', ':'],
        [':', `app create --name X --auth hmac${ENTER}`],
        ['forbidden', ESCAPE],
        ['to review', 'q'],
      ],
    )
    expect([session.code, session.left], session.text).to.deep.equal([0, []])
    const newest = (await audited()).slice(0, 2)
    expect(newest.map(({ actor, action, reason }) => [actor, action, reason])).to.deep.equal([
      ['linh', 'review.note', 'the log shows it'],
      ['linh', 'reminder.settle', null],
    ])
  })

  it('shows a long output with every character whole, wherever the pipe cut it', async () => {
    const app = await anApp(ctx)
    const words = ['customer', 'list', String(app.app.id), '--json', '--limit', '1000']
    const surroundings = { env: cli.env, stdin: new PassThrough().end(), write: () => undefined, columns: null }
    await aCustomer(ctx, app)
    const [row] = await ctx.db.all(customers, '')
    // The names differ in length, so that the cuts, one in 64 kB, come at each byte of a character.
    const name = (n: number) => `${'x'.repeat(n % 3)}${'ễ'.repeat(188)}`
    await insertMany(
      ctx.db,
      customers,
      rowsLike(row!, 900, (n) => ({ name: name(n) })),
    )
    const ran = await within(surroundings, () => runLine(words, { name: null, role: 'owner' }, 'interruptible').ended)
    expect(JSON.parse(ran.lines.join(''))).to.have.length(901)
    expect(ran.lines.join('')).not.to.include('\ufffd')
  })

  it('live and sandbox look different without colour too, and wide characters stand in their columns', async () => {
    const wide = await anApp(ctx, { name: 'Cửa hàng', sandbox: false })
    await partlyPaid(ctx, wide, { external_ref: '日本語のお客様 Nguyễn', price_id: priceId(await aPlan(ctx, wide)) })
    const items = await readReview(ctx, null)
    const screen = {
      items,
      selected: 0,
      pages: [],
      typing: null,
      status: '',
      isBusy: false,
      session: 's',
      writes: false,
    }
    for (const size of [
      { columns: 80, rows: 24 },
      { columns: 132, rows: 50 },
    ]) {
      const lines = drawConsole(screen, size)
      expect(lines).to.have.length(size.rows)
      for (const line of lines) expect(columnsOf(line), line).to.equal(size.columns)
    }
    // Each character of a text that is pasted draws the screen.
    const typed = { prompt: 'note: ', text: `${'Chị Nguyễn gọi, 王さん. '.repeat(500)}the end`, completes: false }
    const startedMs = processorMs()
    const [bottom] = drawConsole(
      { ...screen, typing: { ...typed, enter: () => undefined } },
      { columns: 80, rows: 24 },
    ).slice(-1)
    expect(processorMs() - startedMs, 'ms for one frame').to.be.below(200)
    expect([columnsOf(bottom!), bottom], 'what was typed last').to.satisfy(
      ([columns, line]: [number, string]) => columns === 80 && /^note: .*the end█ ?$/.test(line),
    )
    const ofCase = (sandbox: boolean): Screen => ({
      ...screen,
      pages: [
        { kind: 'case', opened: { item: { ...items[0]!, sandbox }, suggestions: [], lines: [] }, chosen: 0, scroll: 0 },
      ],
    })
    const [live, test] = [false, true].map((sandbox) => drawConsole(ofCase(sandbox), { columns: 80, rows: 24 }))
    expect(live![0]).to.match(/^\[LIVE\] /)
    expect(test![0]).to.match(/^\[TEST\] /)
    expect(live![1]).to.not.equal(test![1])
    expect(drawConsole(screen, { columns: 60, rows: 20 })[0]).to.include('80×24')
    expect(columnsOf('日本')).to.equal(4)
    expect(fitted('日本語', 5)).to.equal('日本…')
    expect(columnsOf('Nguye\u0302\u0303n')).to.equal(6)
    expect(keysIn('\u001b[A\u001b[1;5Cx\u001b')).to.deep.equal([{ name: 'up' }, { character: 'x' }, { name: 'escape' }])
  })

  it('prints the queue for scripts, and needs a terminal that moves its cursor', async () => {
    await oneOfEachKind(ctx)
    const once = await cli.json(['console', '--once'])
    expect(once.map(({ kind, id }: { kind: string; id: unknown }) => [kind, id])).to.deep.equal(
      (await cli.json(['review'])).map(({ kind, id }: { kind: string; id: unknown }) => [kind, id]),
    )
    expect(await cli.table(['console', '--once'])).to.include('underpaid')
    expect(await cli.misused(['console'])).to.include('console --once --json')
    const dumb = await onTerminal({ ...cli.env, TERM: 'dumb' }, ['console'], [])
    expect([dumb.code, dumb.raw.includes('\u001b')]).to.deep.equal([2, false])
    expect(dumb.text).to.include('TERM is dumb')
  })

  itRunsEveryForm('console.test.ts')
})
