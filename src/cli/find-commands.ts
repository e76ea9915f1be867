import type { SearchAnswer } from '#support/answer-search.ts'
import type { FindOptions, Match } from '#support/find.ts'
import { moreOf } from '#support/more-of.ts'
import { required } from './ask.ts'
import { amountCell, appCell, minuteCell, stateCell } from './cells.ts'
import type { Output } from './output.ts'
import { printEndUser, printSteps } from './end-user-screen.ts'
import { APP, type Commands } from './declaration.ts'
import { withSandbox, type Session } from './session.ts'
import { listOf } from './table.ts'

/** `find` and `open`: the commands of support. */
export const commands: Commands = {
  'find [text]': {
    options: [
      [
        '--on <date>',
        'the text is an amount, or your bank account, of this day: 2026-11-21, 21/11/2026 or "21/11/2026 14:05"',
      ],
      APP,
    ],
    examples: [
      'find an@example.com',
      'find user-42 --app 1',
      'find "nguyen thi"',
      'find PG7KD4MXQT',
      'find 99,000 --on 2026-11-21',
      'find 0123456789012 --on "21/11/2026 14:05"',
      'find https://pay.example.com/renew/0f…',
    ],
    async run(session, [text], options: { on?: string; app?: string }) {
      const { answerSearch } = await import('#support/answer-search.ts')
      const { MAX_PER_KIND } = await import('#support/store.ts')
      const { ctx, out } = session
      const asked = await required(text, '<text>', 'Name, e-mail, reference, id, code or link:')
      const found = await answerSearch(ctx, asked, await findOptions(session, options))
      const { screens: end_users, nextSteps: next_steps, isCut } = found
      const matches = await withSandbox(ctx, found.matches)
      if (found.isNear) out.note('No transaction has this code. It may be a typo for:')
      if (isCut) out.note(`Only the newest ${MAX_PER_KIND} of a kind are shown: narrow the search, or give --app.`)
      if (matches.length === 0 && /^\d+$/.test(asked.trim()) && options.on === undefined)
        out.note('No id is this number. If it is an amount of money or a bank account, add its day: --on 2026-11-21.')
      out.result({ matches, end_users, next_steps }, () => printAnswer(out, { ...found, matches }))
    },
  },
  'open [thing]': {
    options: [APP, ['--print', 'only print its address']],
    examples: ['open 17', 'open cs_12', 'open user-42 --app 1', 'open api'],
    async run(session, [thing], options: { app?: string; print?: boolean }) {
      const { out } = session
      const { findPage } = await import('#support/find-page.ts')
      const asked = await required(thing, '<thing>', 'Checkout, transaction, end user or customer:')
      const found = await findPage(session.ctx, asked, await findOptions(session, options))
      out.result(found, () => out.line(found.url))
      out.hint(found.page)
      if (options.print || out.isJson || !process.stdout.isTTY) return
      const { openOnDesktop } = await import('./desktop.ts')
      await openOnDesktop(found.url)
    },
  },
}

interface Printed extends Omit<SearchAnswer, 'matches'> {
  readonly matches: readonly (Match & { readonly sandbox: boolean | null })[]
}

function printAnswer(out: Output, { matches, screens, endUserCount, nextSteps }: Printed): void {
  // An end user's screen says more than its row.
  const rest = matches.filter(({ kind }) => kind !== 'end user' || endUserCount > screens.length)
  const hasAny = (field: 'external_ref' | 'amount' | 'state'): boolean => rest.some((row) => row[field] !== null)
  if (matches.length === 0 || rest.length > 0)
    out.table({
      ...listOf(rest, [
        ['what', (row) => (row.event_type === null ? row.kind : `${row.kind} ${row.event_type}`)],
        ['id', (row) => (row.kind === 'end user' ? null : row.id)],
        ['app', appCell],
        hasAny('external_ref') && ['external_ref', (row) => row.external_ref],
        hasAny('amount') && ['amount', amountCell],
        hasAny('state') && ['state', (row) => stateCell(row.state)],
        ['at (UTC)', (row) => minuteCell(row.at)],
        ['more', moreOf],
      ]),
      none: 'Nothing found. Search for a part of a name, or a whole id, reference,\ncode, link or e-mail address; for an amount of money with --on.',
      optional: ['at (UTC)', 'more'],
    })
  printSteps(out, nextSteps)
  for (const screen of screens) printEndUser(out, screen)
  if (endUserCount > screens.length)
    out.line(`They are about ${endUserCount} end users: search for one of them, or give --app.`)
}

async function findOptions(session: Session, { on, app }: { on?: string; app?: string }): Promise<FindOptions> {
  return {
    ...(on === undefined ? {} : { on }),
    ...(app === undefined ? {} : { appId: (await session.pickApp(app)).id }),
  }
}
