import { Option } from 'commander'
import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import type { Page } from '#http/list-page.ts'
import type { Arguments, Described, Runs } from './declaration.ts'
import type { Output } from './output.ts'
import { banner, withSandbox, type Session } from './session.ts'
import { listOf, type ListColumn, type TableOptions } from './table.ts'
import { UsageError } from './usage-error.ts'

/** A list. JSON output is its rows. */
type List<Row, Shown, Options, Asked> = ListTexts<Shown, Asked> & (Whole<Row, Asked> | Paged<Row, Options, Asked>)

/** A list that is read at once. */
interface Whole<Row, Asked> {
  rows(asked: Asked): Promise<readonly Row[]>
}

/** A list that is read in pages. */
interface Paged<Row, Options, Asked> {
  page(asked: Asked, query: PageQuery): Promise<Page<Row>>
  /** The default of `--limit`; 100 if omitted. */
  readonly defaultLimit?: DefaultLimit<Options>
}

interface ListTexts<Shown, Asked> extends Pick<TableOptions, 'optional' | 'lastOptional' | 'codes' | 'right'> {
  /** Omit it if the list of commands already describes this command. */
  readonly description?: string
  /** The filters; those of pages are added. */
  readonly options?: Described['options']
  readonly examples: readonly string[]
  /** Each with its head and its cell of a row; `false` for a column that is not shown. */
  columns(asked: Asked, shown: readonly Shown[]): Columns<Shown> | Promise<Columns<Shown>>
  /** What to say instead of an empty table. */
  none(asked: Asked): string
  /** Lines below the table. */
  below?(shown: readonly Shown[]): readonly string[] | Promise<readonly string[]>
}

/** A row with its app, and whether that is a sandbox; null for rows that belong to no app. */
export type Marked<Row> = Row & { readonly app_id: number | null; readonly sandbox: boolean | null }
/** If it depends on the filters, `--limit` is declared among them, with its own description. */
type DefaultLimit<Options> = string | ((filters: Options) => number)
type Columns<Shown> = readonly (ListColumn<Shown> | false)[]

/** What a list of the whole service is asked for. */
interface OfService<Options = object> {
  readonly ctx: Context
  readonly out: Output
  readonly options: Options
}

/** What a list of one app is asked for. */
export interface OfApp<Options = object> extends OfService<Options> {
  readonly app: App
}

/** What a list of all apps is asked for; `app` is the named one. */
export interface OfApps<Options = object> extends OfService<Options> {
  readonly app: App | null
}

/** A command that shows a list; other commands may call its `run`. */
type Listing = Described & { readonly run: Runs['run'] }

/** A list of the app that the argument `[app]` names. Its rows have `app_id` and `sandbox`. */
export function listOfApp<Row extends object, Options = object>(
  list: List<Row, Marked<Row>, Options, OfApp<Options>>,
): Listing {
  return listing(list, async ({ ctx, out, pickApp }, [named], options) => {
    const app = await pickApp(named)
    return {
      asked: { ctx, out, app, options },
      heading: banner(app),
      mark: (rows) => rows.map((row) => ({ app_id: app.id, sandbox: app.isSandbox, ...row })),
    }
  })
}

/** A list of all apps, whose rows get `sandbox`. With `--app` or `[app]` it is of that one and, if it `isHeaded`, has the app above it. */
export function listOfApps<Row extends { readonly app_id: number | null }, Options = object>(
  list: List<Row, Marked<Row>, Options, OfApps<Options>> & { readonly isHeaded?: true },
): Listing {
  return listing(list, async ({ ctx, out, pickApp }, [argument], options: Options & { app?: string }) => {
    const named = options.app ?? argument
    const app = named === undefined ? null : await pickApp(named)
    return {
      asked: { ctx, out, app, options },
      heading: app && list.isHeaded ? banner(app) : null,
      mark: (rows) => withSandbox(ctx, rows),
    }
  })
}

/** A list of what belongs to no app. */
export function listOfService<Row, Options = object>(list: List<Row, Row, Options, OfService<Options>>): Listing {
  return listing(list, ({ ctx, out }, _args, options) => ({
    asked: { ctx, out, options },
    heading: null,
    mark: (rows) => rows,
  }))
}

/** A list that is about to be read: what it is asked for, the line above it, and how its rows are marked. */
interface Opened<Row, Shown, Asked> {
  readonly asked: Asked
  readonly heading: string | null
  readonly mark: (rows: readonly Row[]) => readonly Shown[] | Promise<readonly Shown[]>
}

function listing<Row, Shown, Options, Asked>(
  list: List<Row, Shown, Options, Asked>,
  open: (
    session: Session,
    args: Arguments,
    options: Options,
  ) => Opened<Row, Shown, Asked> | Promise<Opened<Row, Shown, Asked>>,
): Listing {
  const { description, options: filters = [], examples } = list
  return {
    ...(description === undefined ? {} : { description }),
    options: 'page' in list ? [...filters, ...pageOptions(list.defaultLimit)] : filters,
    examples,
    refuse(_args, options: Options & PageOptions) {
      if ('page' in list) limitOf(options, list.defaultLimit)
    },
    async run(session, args, options: Options & PageOptions) {
      const { out } = session
      const { asked, heading, mark } = await open(session, args, options)
      const rows =
        'page' in list
          ? await gatherRows(out, limitOf(options, list.defaultLimit), options, (query) => list.page(asked, query))
          : await list.rows(asked)
      const shown = await mark(rows)
      const columns = listOf(shown, await list.columns(asked, shown))
      const below = (await list.below?.(shown)) ?? []
      out.result(shown, () => {
        if (heading !== null) out.line(heading)
        out.table({ ...list, ...columns, none: list.none(asked) })
        for (const line of below) out.lines(line)
      })
    },
  }
}

/** The most that is read at once. */
const PAGE = 100

/** The start and the length of a list, as typed. */
interface PageOptions {
  readonly limit?: string
  readonly cursor?: string
}

/** What a page of a list is asked for. */
interface PageQuery {
  readonly limit: string
  readonly cursor?: string
}

function pageOptions(defaultLimit: DefaultLimit<never> = '100'): Option[] {
  return [
    ...(typeof defaultLimit === 'string' ? [new Option('--limit <n>', 'how many at most').default(defaultLimit)] : []),
    new Option('--cursor <cursor>', 'continue an earlier list, which printed it'),
  ]
}

/** The number of `--limit`, or its default. */
function limitOf<Options>(options: Options & PageOptions, defaultLimit: DefaultLimit<Options> | undefined): number {
  const { limit } = options
  if (limit === undefined && typeof defaultLimit === 'function') return defaultLimit(options)
  if (!/^[1-9]\d{0,5}$/.test(limit ?? '')) throw new UsageError('--limit must be a number from 1 to 999999')
  return Number(limit)
}

/** At most `limit` rows, from `--cursor` on. Reports further rows on standard error, also to scripts. */
async function gatherRows<T>(
  out: Output,
  limit: number,
  from: PageOptions,
  fetchPage: (query: PageQuery) => Promise<Page<T>>,
): Promise<T[]> {
  const rows: T[] = []
  let cursor: string | null = from.cursor ?? null
  do {
    const size = String(Math.min(PAGE, limit - rows.length))
    const page: Page<T> = await fetchPage(cursor === null ? { limit: size } : { limit: size, cursor })
    rows.push(...page.rows)
    cursor = page.nextCursor
  } while (cursor !== null && rows.length < limit)
  if (cursor !== null) out.note(`Showing ${rows.length}; see more with --cursor ${cursor}, or with a higher --limit.`)
  return rows
}
