import type { Command } from 'commander'
import type { App } from '#apps/store.ts'
import type { CredentialsSpec } from '#providers/credentials-spec.ts'
import type { Method } from '#providers/providers.ts'
import { requiredChoice, requiredSecret } from './ask.ts'
import { inChange, withDryRun } from './change.ts'
import { withExamples } from './examples.ts'
import { banner, inSession, type Session } from './session.ts'
import { UsageError } from './usage-error.ts'

/** `method …`: how an app's customers can pay. */
export function registerMethodCommands(program: Command): void {
  const method = program.command('method').description("how an app's customers can pay")
  const enable = method
    .command('enable [app] [method]')
    .description('enable a way to pay; credentials come by prompt or environment')
    .option('--skip-check', 'do not try the credentials at the provider')
    .action(
      async (
        named: string | undefined,
        wanted: string | undefined,
        options: { skipCheck?: boolean },
        command: Command,
      ) => {
        await inChange(command, async (session) => {
          const app = await session.app(named)
          const name = await pickMethod(wanted)
          const [{ providerOf }, { enableMethod }] = await Promise.all([
            import('#providers/providers.ts'),
            import('#providers/methods.ts'),
          ])
          const spec = providerOf(name).credentials
          const credentials = spec && (await readCredentials(spec))
          if (spec && options.skipCheck !== true) await checkCredentials(session, spec, credentials)
          await enableMethod(session.ctx, session.actor, app, name, credentials)
          await printMethods(session, app)
        })
      },
    )
  withDryRun(enable)
  withExamples(enable, 'method enable 1 test', 'method enable 1 card')
  const disable = method
    .command('disable [app] [method]')
    .description('open no new payments by this method; those that are open complete')
    .action(async (named: string | undefined, wanted: string | undefined, _options: object, command: Command) => {
      await inChange(command, async (session) => {
        const app = await session.app(named)
        const { disableMethod } = await import('#providers/methods.ts')
        await disableMethod(session.ctx, session.actor, app, await pickMethod(wanted))
        await printMethods(session, app)
      })
    })
  withDryRun(disable)
  withExamples(disable, 'method disable 1 card')
  const list = method
    .command('list [app]')
    .description("an app's methods")
    .action(async (named: string | undefined, _options: object, command: Command) => {
      await inSession(command, async (session) => printMethods(session, await session.app(named)))
    })
  withExamples(list, 'method list 1')
}

/** The method; on a terminal one of all where it is missing. */
async function pickMethod(wanted: string | undefined): Promise<Method> {
  const { METHODS } = await import('#providers/providers.ts')
  const picked = await requiredChoice(wanted, '<method>', 'Which method?', () =>
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

/** Throws where the provider refuses the credentials; a provider that cannot be reached refuses nothing. */
async function checkCredentials({ ctx, out }: Session, spec: CredentialsSpec, credentials: unknown): Promise<void> {
  const check = await spec.check(ctx.config, credentials)
  if (check.result === 'refused') throw new Error(`${check.message}; nothing was changed`)
  out.hint(check.message)
}

async function printMethods({ ctx, out }: Session, app: App): Promise<void> {
  const [{ listPaymentMethods }, { METHODS }] = await Promise.all([
    import('#apps/store.ts'),
    import('#providers/providers.ts'),
  ])
  const rows = await listPaymentMethods(ctx.db, app.id)
  const methods = METHODS.map((method) => {
    const row = rows.find((candidate) => candidate.method === method)
    return { method, enabled: row?.isEnabled ?? false, has_credentials: (row?.credentials ?? null) !== null }
  })
  out.result(methods, () => {
    out.line(banner(app))
    out.table({
      head: ['method', 'enabled', 'credentials'],
      rows: methods.map((each) => [each.method, each.enabled, each.has_credentials]),
      none: '',
    })
  })
}
