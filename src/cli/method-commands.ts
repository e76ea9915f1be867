import type { Command } from 'commander'
import type { App } from '#apps/store.ts'
import type { CredentialsSpec } from '#providers/credentials-spec.ts'
import type { ListedMethod, ListedVersion } from '#providers/list-methods.ts'
import type { Method } from '#providers/providers.ts'
import { counted } from '#shared/counted.ts'
import { goAhead, requiredChoice, requiredSecret } from './ask.ts'
import { inChange, withDryRun } from './change.ts'
import { withExamples } from './examples.ts'
import { banner, inSession, performAs, type Session } from './session.ts'
import { UsageError } from './usage-error.ts'

/** `method …`: how an app's customers can pay. */
export function registerMethodCommands(program: Command): void {
  const method = program.command('method').description("how an app's customers can pay")
  const enable = method
    .command('enable [app] [method]')
    .description('enable a payment method; credentials come from a prompt or the environment')
    .option('--skip-check', 'do not try the credentials at the provider')
    .action(
      async (
        named: string | undefined,
        methodName: string | undefined,
        options: { skipCheck?: boolean },
        command: Command,
      ) => {
        await inChange(command, async (session) => {
          const app = await session.app(named)
          const name = await pickMethod(methodName)
          const [{ providerOf }, { enableMethod }] = await Promise.all([
            import('#providers/providers.ts'),
            import('#providers/methods.ts'),
          ])
          const spec = providerOf(name).credentials
          const credentials = spec && (await readCredentials(spec))
          if (spec && options.skipCheck !== true) await checkCredentials(session, spec, credentials)
          await performAs(session, enableMethod, credentials, { app, method: name })
          await printMethods(session, app)
        })
      },
    )
  withDryRun(enable)
  withExamples(enable, 'method enable 1 test', 'method enable 1 card')
  const disable = method
    .command('disable [app] [method]')
    .description('open no new payments by this method; open ones can still complete')
    .action(async (named: string | undefined, methodName: string | undefined, _options: object, command: Command) => {
      await inChange(command, async (session) => {
        const app = await session.app(named)
        const { disableMethod } = await import('#providers/methods.ts')
        await performAs(session, disableMethod, undefined, { app, method: await pickMethod(methodName) })
        await printMethods(session, app)
      })
    })
  withDryRun(disable)
  withExamples(disable, 'method disable 1 card')
  const forget = method
    .command('forget [app] [method]')
    .description(
      'erase an earlier version of credentials: payments opened with it can no longer be looked up or refunded',
    )
    .option('--version <number>', 'which one; method list shows them')
    .option('--yes', 'do not ask')
    .action(
      async (named: string | undefined, methodName: string | undefined, options: ForgetOptions, command: Command) => {
        await inChange(command, async (session) => forgetOne(session, await session.app(named), methodName, options))
      },
    )
  withDryRun(forget)
  withExamples(forget, 'method forget 1 card --version 1')
  const list = method
    .command('list [app]')
    .description("an app's methods, and the versions of their credentials")
    .action(async (named: string | undefined, _options: object, command: Command) => {
      await inSession(command, async (session) => printMethods(session, await session.app(named)))
    })
  withExamples(list, 'method list 1')
}

/** The method; on a terminal it is picked from a menu if it is missing. */
async function pickMethod(methodName: string | undefined): Promise<Method> {
  const { METHODS } = await import('#providers/providers.ts')
  const picked = await requiredChoice(methodName, '<method>', 'Which method?', () =>
    Promise.resolve(METHODS.map((method) => ({ value: method, name: method }))),
  )
  const known = METHODS.find((method) => method === picked)
  if (!known) throw new UsageError(`<method> must be one of ${METHODS.join(', ')}`)
  return known
}

async function readCredentials({ questions }: CredentialsSpec): Promise<Record<string, string>> {
  const { cliSecret } = await import('#config.ts')
  const credentials: Record<string, string> = {}
  for (const { field, variable, message } of questions) {
    credentials[field] = await requiredSecret(variable, cliSecret(variable), message)
  }
  return credentials
}

/** Throws if the provider refuses the credentials, but not if it cannot be reached. */
async function checkCredentials({ ctx, out }: Session, spec: CredentialsSpec, credentials: unknown): Promise<void> {
  const check = await spec.check(ctx.config, credentials)
  if (check.result === 'refused') throw new Error(`${check.message}; nothing was changed`)
  out.hint(check.message)
}

interface ForgetOptions {
  readonly version?: string
  readonly yes?: boolean
  readonly dryRun?: boolean
}

async function forgetOne(
  session: Session,
  app: App,
  methodName: string | undefined,
  options: ForgetOptions,
): Promise<void> {
  const { out } = session
  const method = await pickMethod(methodName)
  const versions = (await listed(session, app)).find((each) => each.method === method)?.versions ?? []
  const version = await pickVersion(versions, options.version)
  const found = versions.find((each) => each.version === version)
  const use = found
    ? `${counted(found.open_sessions, 'open session')}, ${counted(found.refundable_payments, 'refundable payment')}`
    : ''
  if (options.dryRun !== true) await goAhead(options.yes, `Forget version ${version} of ${method} (${use})?`)
  const { forgetVersion } = await import('#providers/methods.ts')
  const { closedSessions } = await performAs(session, forgetVersion, { version }, { app, method })
  out.result({ method, version, closed_sessions: closedSessions }, () => {
    out.line(banner(app))
    out.line(
      `version ${version} of the ${method} credentials is forgotten; ${counted(closedSessions, 'open session')} closed`,
    )
  })
}

async function pickVersion(versions: readonly ListedVersion[], given: string | undefined): Promise<number> {
  const picked = await requiredChoice(given, '--version', 'Which version?', () =>
    Promise.resolve(
      versions
        .filter(({ forgotten }) => !forgotten)
        .map(({ version, created_at: since }) => ({ value: String(version), name: `${version}, of ${since}` })),
    ),
  )
  if (!/^[1-9]\d{0,8}$/.test(picked)) throw new UsageError('--version must be a number')
  return Number(picked)
}

async function listed({ ctx }: Session, app: App): Promise<ListedMethod[]> {
  const { listMethods } = await import('#providers/list-methods.ts')
  return listMethods(ctx, app)
}

async function printMethods(session: Session, app: App): Promise<void> {
  const { out } = session
  const methods = await listed(session, app)
  const shown = methods.map((each) => ({ app_id: app.id, sandbox: app.isSandbox, ...each }))
  out.result(shown, () => {
    out.line(banner(app))
    out.table({
      head: ['method', 'enabled', 'credentials'],
      rows: methods.map((each) => [each.method, each.enabled, each.has_credentials]),
      none: '',
    })
    const versions = methods.flatMap(({ method, versions: all }) => all.map((version) => ({ method, ...version })))
    if (versions.length > 1) {
      out.table({
        head: ['method', 'version', 'since (UTC)', 'state', 'open sessions', 'refundable payments'],
        rows: versions.map((each) => [
          each.method,
          each.version,
          each.created_at,
          stateOf(each),
          each.open_sessions,
          each.refundable_payments,
        ]),
        none: '',
      })
    }
  })
}

function stateOf({ forgotten, retired_at: retiredAt }: ListedVersion): string {
  if (forgotten) return 'forgotten'
  return retiredAt === null ? 'in use' : `replaced ${retiredAt}`
}
