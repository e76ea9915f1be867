import { userInfo } from 'node:os'
import type { Command } from 'commander'
import { operator, type Caller } from '#commands/caller.ts'
import type { Command as CommandValue } from '#commands/command.ts'
import type { Context } from '#context.ts'
import type { App } from '#apps/store.ts'
import type { ErrorCode } from '#shared/errors.ts'
import { isTerminal, requiredChoice } from './ask.ts'
import { neededArguments } from './examples.ts'
import type { Output } from './output.ts'
import { printable } from './printable.ts'
import { UsageError } from './usage-error.ts'
import type { Who } from './who.ts'

/** What the action of a command works with. */
export interface Session {
  readonly ctx: Context
  readonly out: Output
  /** The operator who runs the command, as the audit log names them: `linh`, or `linh (sudo)`. */
  readonly caller: Caller
  readonly who: Who
  /** The app named by `<app>`. If it is missing on a terminal, the operator picks one. */
  readonly pickApp: (named: string | undefined) => Promise<App>
}

/** Runs a command on the database, whether or not the daemon is up, and closes what it opened. */
export async function inSession(command: Command, who: Who, work: (session: Session) => Promise<void>): Promise<void> {
  const out = await outputOf(command)
  refuseMissing(command)
  const { loadConfig } = await import('#config/config.ts')
  const { openContext } = await import('#open-context.ts')
  // Log lines would mix with the command's output; errors reach the operator as messages.
  const config = { ...loadConfig(), logLevel: 'silent' as const }
  const { ctx, close } = await openContext({ config, thread: 'cli', poolSize: 4 })
  try {
    await work({ ctx, out, caller: await callerOf(who), who, pickApp: (named) => pickApp(ctx, named) })
  } finally {
    await close()
  }
}

/** The operator, as the audit log names them. */
export async function callerOf({ name }: Who): Promise<Caller> {
  const { operatorName } = await import('#config/environment.ts')
  return operator(name ?? operatorName(userInfo().username))
}

/** Performs a command as the operator. */
export async function performAs<Scope, Result>(
  { ctx, caller }: Session,
  command: CommandValue<Scope, Result>,
  input: unknown,
  scope: Scope,
): Promise<Result> {
  const { perform } = await import('#commands/perform.ts')
  return perform(ctx, caller, command, input, scope)
}

/** In a script a missing argument fails at once; on a terminal the command asks for it. */
function refuseMissing(command: Command): void {
  if (isTerminal()) return
  const needed = command.registeredArguments.slice(0, neededArguments(command))
  const missing = needed.find((_, index) => (command.args[index] ?? '') === '')
  if (missing) throw new UsageError(`missing required argument <${missing.name()}>`)
}

/** The output of a command, according to its `--json`. What draws its tables is loaded here, since `--help` draws none. */
export async function outputOf(command: Command): Promise<Output> {
  const { openOutput } = await import('./output.ts')
  return openOutput(command.optsWithGlobals<{ json?: boolean }>().json === true)
}

/** Ends a command whose printed result is a failure: the exit code is 1, and standard error has the reason. */
export async function fail(code: ErrorCode, reason: string): Promise<never> {
  const { AppError } = await import('#shared/errors.ts')
  throw new AppError(code, reason)
}

/** `[TEST]` or `[LIVE]`, with the app's name. */
export function banner(app: App): string {
  return `${markOf(app.isSandbox)} ${printable(app.name)} (app ${app.id})`
}

/** Prints fields of an app, or of something in it, below the app's banner; JSON output is `answer`. */
export function printOf(out: Output, app: App, fields: object, answer = fields): void {
  out.result(answer, () => {
    out.line(banner(app))
    out.fields({ ...fields })
  })
}

/** The banners of the apps that things belong to; none for things without an app, or of an app that exists only in a dry run. */
export async function bannersOf(ctx: Context, appIds: readonly (number | null)[]): Promise<string[]> {
  const { listApps } = await import('#apps/store.ts')
  return (await listApps(ctx.db)).filter(({ id }) => appIds.includes(id)).map(banner)
}

/** `[TEST]` of a sandbox app, `[LIVE]` of any other. */
export function markOf(isSandbox: boolean): string {
  return isSandbox ? '[TEST]' : '[LIVE]'
}

/** Adds to each row whether its app is a sandbox; null for rows that belong to no app. */
export async function withSandbox<T extends { readonly app_id: number | null }>(
  ctx: Context,
  rows: readonly T[],
): Promise<(T & { readonly sandbox: boolean | null })[]> {
  const { listApps } = await import('#apps/store.ts')
  const sandboxes = new Map((await listApps(ctx.db)).map(({ id, isSandbox }) => [id, isSandbox]))
  return rows.map((row) => ({ ...row, sandbox: row.app_id === null ? null : (sandboxes.get(row.app_id) ?? null) }))
}

async function pickApp(ctx: Context, named: string | undefined): Promise<App> {
  const { appNamed } = await import('#apps/find-app.ts')
  const { listApps } = await import('#apps/store.ts')
  const name = await requiredChoice(named, '<app>', 'Which app?', async () =>
    (await listApps(ctx.db)).map((app) => ({ value: String(app.id), name: banner(app), description: app.apiKey })),
  )
  return appNamed(ctx, name)
}
