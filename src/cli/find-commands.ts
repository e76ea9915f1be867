import type { FindOptions, Match } from '#support/find.ts'
import { required } from './ask.ts'
import { appCell, minuteCell, moneyCell, stateCell } from './cells.ts'
import { printEndUser, printSteps } from './end-user-screen.ts'
import type { Commands } from './declaration.ts'
import { withSandbox, type Session } from './session.ts'

/** More screens than this do not answer a question about one end user. */
const MAX_SCREENS = 3

/** `find` and `open`: the commands of support. */
export const commands: Commands = {
  'find [text]': {
    options: [
      ['--on <date>', 'the text is an amount of money of this day, such as 2026-11-21 or 21/11/2026'],
      ['--app <app>', 'only of this app'],
    ],
    examples: [
      'find an@example.com',
      'find user-42 --app 1',
      'find "nguyen thi"',
      'find 99,000 --on 2026-11-21',
      'find https://pay.example.com/renew/0f…',
    ],
    async run(session, [text], options: { on?: string; app?: string }) {
      const [{ find: findText, MAX_PER_KIND }, { viewEndUser }] = await Promise.all([
        import('#support/find.ts'),
        import('#support/view-end-user.ts'),
      ])
      const { ctx, out } = session
      const asked = await required(text, '<text>', 'Name, e-mail, reference, id, code or link:')
      const { matches, endUsers, nextSteps } = await findText(ctx, asked, await findOptions(session, options))
      const people = await Promise.all(
        endUsers.slice(0, MAX_SCREENS).map(({ appId, externalRef }) => viewEndUser(ctx, appId, externalRef)),
      )
      const shown = await withSandbox(ctx, matches)
      const kinds = Map.groupBy(matches, ({ kind }) => kind)
      if ([...kinds.values()].some(({ length }) => length >= MAX_PER_KIND))
        out.note(`Only the newest ${MAX_PER_KIND} of a kind are shown: narrow the search, or give --app.`)
      if (shown.length === 0 && /^\d+$/.test(asked.trim()) && options.on === undefined)
        out.note('No id is this number. If it is an amount of money, add its day: --on 2026-11-21.')
      // The screen of an end user says its own steps.
      const said = new Set(people.flatMap((person) => person.next_steps.map(({ command: step }) => step)))
      const steps = nextSteps.filter(({ command: step }) => !said.has(step))
      out.result({ matches: shown, end_users: people, next_steps: steps }, () => {
        // An end user's screen says more than its row.
        const rest = shown.filter(({ kind }) => kind !== 'end user' || endUsers.length > people.length)
        if (shown.length === 0 || rest.length > 0)
          out.table({
            head: ['what', 'id', 'app', 'external_ref', 'amount', 'state', 'at (UTC)', 'more'],
            rows: rest.map((row) => [
              row.event_type === null ? row.kind : `${row.kind} ${row.event_type}`,
              row.kind === 'end user' ? null : row.id,
              appCell(row),
              row.external_ref,
              row.amount === null ? null : moneyCell(row.amount, row.currency ?? ''),
              stateCell(row.state),
              minuteCell(row.at),
              moreOf(row),
            ]),
            none: 'Nothing found. Search for a part of a name, or a whole id, reference,\ncode, link or e-mail address; for an amount of money with --on.',
            optional: ['at (UTC)', 'more'],
          })
        printSteps(out, steps)
        for (const person of people) printEndUser(out, person)
        if (endUsers.length > people.length)
          out.line(`They are about ${endUsers.length} end users: search for one of them, or give --app.`)
      })
    },
  },
  'open [thing]': {
    options: [
      ['--app <app>', 'only of this app'],
      ['--print', 'only print its address'],
    ],
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

/** The command that shows more of a match. */
function moreOf({ kind, id, app_id: app }: Match): string | null {
  switch (kind) {
    case 'transaction':
    case 'payment':
      return `${kind} show ${id}`
    case 'customer':
    case 'plan':
      return `${kind} show ${app ?? ''} ${id}`
    case 'app':
      return `app show ${id}`
    case 'bank mail':
      return 'bank-mail list'
    case 'event':
      return `webhook show ${id}`
    case 'price':
    case 'checkout':
    case 'end user':
      return null
  }
}

async function findOptions(session: Session, { on, app }: { on?: string; app?: string }): Promise<FindOptions> {
  return {
    ...(on === undefined ? {} : { on }),
    ...(app === undefined ? {} : { appId: (await session.app(app)).id }),
  }
}
