import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import type { Page } from '#http/page-of.ts'
import type { Declaration } from './declaration.ts'
import { gatherRows, pageOptions, readLimit, type PageOptions, type PageQuery } from './pages.ts'
import { banner, withSandbox, type Session } from './session.ts'
import { listOf, type ListColumn, type TableOptions } from './table.ts'

/** A list that comes in pages. As JSON it is the rows that `page` reads, each with `app_id` and `sandbox`. */
interface List<Row, Asked> extends Pick<TableOptions, 'optional' | 'codes' | 'right'> {
  readonly description: string
  /** The filters; those of app and page are added. */
  readonly options?: Declaration['options']
  readonly examples: readonly string[]
  page(asked: Asked, query: PageQuery): Promise<Page<Row>>
  /** Each with its head and its cell of a row; `false` stands for one that is not shown. */
  columns(asked: Asked, rows: readonly Marked<Row>[]): Columns<Row> | Promise<Columns<Row>>
  /** What to say instead of an empty table. */
  none(asked: Asked): string
}

/** A row with its app, and whether that is a sandbox; null for rows that belong to no app. */
type Marked<Row> = Row & { readonly app_id: number | null; readonly sandbox: boolean | null }
type Columns<Row> = readonly (ListColumn<Marked<Row>> | false)[]

/** What a list of one app is asked for. */
export interface OfApp<Options = object> {
  readonly ctx: Context
  readonly app: App
  readonly options: Options
}

/** What a list of all apps is asked for; `app` is that of `--app`. */
export interface OfApps<Options = object> {
  readonly ctx: Context
  readonly app: App | null
  readonly options: Options
}

/** A list of the app that the argument `[app]` names. */
export function listOfApp<Row extends object, Options = object>(list: List<Row, OfApp<Options>>): Declaration {
  return {
    ...textsOf(list, []),
    async run(session, [named], options: Options & PageOptions) {
      const app = await session.app(named)
      const asked = { ctx: session.ctx, app, options }
      const rows = await rowsOf(session, list, asked)
      const shown = rows.map((row) => ({ app_id: app.id, sandbox: app.isSandbox, ...row }))
      await printList(session, list, { asked, shown, heading: banner(app) })
    },
  }
}

/** A list of all apps. With `--app` it is of that one and, if it `isHeaded`, has the app above it. */
export function listOfApps<Row extends { readonly app_id: number | null }, Options = object>(
  list: List<Row, OfApps<Options>> & { readonly isHeaded?: true },
): Declaration {
  return {
    ...textsOf(list, [['--app <app>', 'only of this app']]),
    async run(session, _args, options: Options & PageOptions & { app?: string }) {
      const app = options.app === undefined ? null : await session.app(options.app)
      const asked = { ctx: session.ctx, app, options }
      const shown = await withSandbox(session.ctx, await rowsOf(session, list, asked))
      await printList(session, list, { asked, shown, heading: app && list.isHeaded ? banner(app) : null })
    },
  }
}

function textsOf<Row, Asked>(
  { description, options = [], examples }: List<Row, Asked>,
  before: NonNullable<Declaration['options']>,
): Declaration {
  return {
    description,
    options: [...before, ...options, ...pageOptions()],
    examples,
    refuse: (_args, { limit }: PageOptions) => void readLimit(limit),
  }
}

function rowsOf<Row, Asked>(
  { out }: Session,
  list: List<Row, Asked>,
  asked: Asked & { readonly options: PageOptions },
): Promise<Row[]> {
  const { options } = asked
  return gatherRows(out, readLimit(options.limit), options, (query) => list.page(asked, query))
}

async function printList<Row, Asked>(
  { out }: Session,
  list: List<Row, Asked>,
  { asked, shown, heading }: { asked: Asked; shown: readonly Marked<Row>[]; heading: string | null },
): Promise<void> {
  const { optional = [], codes = [], right = [] } = list
  const columns = await list.columns(asked, shown)
  out.result(shown, () => {
    if (heading !== null) out.line(heading)
    out.table({ ...listOf(shown, columns), none: list.none(asked), optional, codes, right })
  })
}
