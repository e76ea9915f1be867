import { z } from 'zod'
import type { Caller as CommandCaller } from '#commands/caller.ts'
import type { Command } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import type { Context } from '#context.ts'
import type { Queries } from '#db/queries.ts'
import type { ErrorCode } from '#shared/errors.ts'
import { given } from '#shared/patch.ts'
import type { RealTime } from '#shared/time.ts'
import type { Page } from './list-page.ts'

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH'

/** Whether calls take an `Idempotency-Key` (R230). A PATCH can be repeated without one. */
export function isKeyed(method: HttpMethod): boolean {
  return method === 'POST' || method === 'PUT'
}

/** Who may call: sellers' servers only, or clients with an identity token too. */
export type Access = 'hmac' | 'any'

/** An API call, read and authenticated. `body` is unchecked JSON; undefined for methods without one. */
export interface ApiRequest<Caller> {
  readonly caller: Caller
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string | undefined>>
  readonly body: unknown
}

/** The texts of the reference about a call, in Markdown. */
interface RouteWords {
  /** Its name in client libraries: `createPlan`. */
  readonly id: string
  /** A few words: `Create a plan`. */
  readonly summary: string
  readonly description?: string
  /** The error codes of this call, in addition to the codes of every call. */
  readonly errors?: readonly ErrorCode[]
  /** The query parameters; any other is refused. */
  readonly filter?: z.ZodObject
}

/** A call of the API, as data: the router, the 405 handling, the OpenAPI document and the tests of coverage read it. */
export interface ApiRoute<Caller> {
  readonly method: HttpMethod
  /** With `:name` for parameters. */
  readonly path: string
  readonly access: Access
  readonly status: 200 | 201
  /** The shape of `data`. */
  readonly output: z.ZodType
  /** The shape of the body; null if the call has none. */
  readonly body: z.ZodType | null
  readonly words: RouteWords
  readonly isList: boolean
  readonly work: Work<Caller>
}

/** What a call does. Work that is one transaction calls `keep` as its last step there; the answer of other work is kept after it. */
type Work<Caller> = (ctx: Context, request: ApiRequest<Caller>, keep?: Keep) => Promise<ApiAnswer>

/** Stores the answer in the transaction that it belongs to. */
export type Keep = (queries: Queries, answer: ApiAnswer) => Promise<void>

/** `data` of the success envelope; for lists that can grow, the next cursor, null at the end. */
export interface ApiAnswer {
  readonly data: unknown
  readonly nextCursor?: string | null
}

interface RouteHead<Output extends z.ZodType> extends RouteWords {
  readonly method: HttpMethod
  readonly path: string
  readonly access: Access
  readonly status?: 200 | 201
  readonly output: Output
}

interface CommandRoute<Caller, Output extends z.ZodType, Scope, Result> extends RouteHead<Output> {
  /** A function if clients may do less than servers. */
  readonly command: Command<Scope, Result> | ((caller: Caller) => Command<Scope, Result>)
  /** The input of a server's command, if the command depends on the caller. */
  readonly body?: z.ZodType
  /** The command's scope. Throws if the caller may not do this, or the path names nothing. */
  scope(request: ApiRequest<Caller>): Scope
  present(result: Result, now: RealTime, request: ApiRequest<Caller>): z.input<Output>
}

interface QueryRoute<Caller, Output extends z.ZodType> extends RouteHead<Output> {
  readonly body?: z.ZodType
  query(ctx: Context, request: ApiRequest<Caller>): Promise<z.input<Output>>
}

interface ListRoute<Caller, Item extends z.ZodType, Row> extends Omit<RouteHead<Item>, 'output'> {
  /** The shape of each of its items. */
  readonly item: Item
  list(ctx: Context, request: ApiRequest<Caller>): Promise<Page<Row>>
  present(row: Row): z.input<Item>
}

/** The kinds of API routes for callers of this type. */
export function routesOf<Caller extends CommandCaller>() {
  return {
    /** A POST, PUT or PATCH that performs a command. Its answer for an `Idempotency-Key` is committed with its work. */
    command: <Output extends z.ZodType, Scope, Result>(
      route: CommandRoute<Caller, Output, Scope, Result>,
    ): ApiRoute<Caller> => ({
      ...headOf(route),
      body: route.body ?? inputOf(route.command),
      async work(ctx, request, keep) {
        const answerOf = (result: Result): ApiAnswer => ({ data: route.present(result, ctx.clock.now(), request) })
        // Returns the very answer that was kept, with the same times.
        const kept: ApiAnswer[] = []
        const keepAnswer = async (queries: Queries, result: Result): Promise<void> => {
          const answer = answerOf(result)
          await keep?.(queries, answer)
          kept.push(answer)
        }
        const { caller, body } = request
        const command = typeof route.command === 'function' ? route.command(caller) : route.command
        const result = await perform(ctx, caller, command, body, route.scope(request), { keep: keep && keepAnswer })
        return kept.at(-1) ?? answerOf(result)
      },
    }),
    /** A route that only reads, or that performs several commands. */
    query: <Output extends z.ZodType>(route: QueryRoute<Caller, Output>): ApiRoute<Caller> => ({
      ...headOf(route),
      body: route.body ?? null,
      work: async (ctx, request) => ({ data: await route.query(ctx, request) }),
    }),
    /** A list that can grow: one page, newest first, and the cursor of the next. */
    list: <Item extends z.ZodType, Row>(route: ListRoute<Caller, Item, Row>): ApiRoute<Caller> => ({
      ...headOf({ ...route, output: z.array(route.item) }),
      isList: true,
      body: null,
      async work(ctx, request) {
        const { rows, nextCursor } = await route.list(ctx, request)
        return { data: rows.map((row) => route.present(row)), nextCursor }
      },
    }),
  }
}

/** Null if it depends on the caller or the settings: such a route declares its `body`. */
function inputOf(command: object): z.ZodType | null {
  return 'input' in command && command.input instanceof z.ZodType ? command.input : null
}

function headOf({ method, path, access, status = 200, output, ...rest }: RouteHead<z.ZodType>) {
  const { id, summary, description, errors, filter } = rest
  const words = given({ id, summary, description, errors, filter }) as RouteWords
  return { method, path, access, status, output, words, isList: false }
}
