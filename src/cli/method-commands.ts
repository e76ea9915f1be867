import type { App } from '#apps/store.ts'
import type { CredentialsSpec } from '#providers/credentials-spec.ts'
import type { ListedVersion } from '#providers/list-methods.ts'
import type { Method } from '#providers/providers.ts'
import { counted } from '#shared/counted.ts'
import { AppError } from '#shared/errors.ts'
import { goAhead, requiredChoice, requiredSecret, requiredWord } from './ask.ts'
import type { Consent } from './change.ts'
import { YES, type Commands, type Texts } from './declaration.ts'
import { numberOf } from './number-of.ts'
import { banner, performAs, type Session } from './session.ts'
import { listOf } from './table.ts'

/** `method …`: how an app's customers can pay. */
export const commands: Commands = {
  'method enable [app] [method]': {
    description: 'enable a payment method; credentials come from a prompt or the environment',
    options: [['--skip-check', 'do not try the credentials at the provider']],
    examples: ['method enable 1 test', 'method enable 1 card'],
    async change(session, [named, methodName], options: { skipCheck?: boolean }) {
      const app = await session.pickApp(named)
      const name = await pickMethod(methodName)
      const { providerOf } = await import('#providers/providers.ts')
      const { enableMethod } = await import('#providers/methods.ts')
      const spec = providerOf(name).credentials
      const credentials = spec && (await readCredentials(spec))
      if (spec && options.skipCheck !== true) await checkCredentials(session, spec, credentials)
      await performAs(session, enableMethod, credentials, { app, method: name })
      await printMethods(session, app)
    },
  },
  'method disable [app] [method]': {
    description: 'open no new payments by this method; open ones can still complete',
    examples: ['method disable 1 card'],
    async change(session, [named, methodName]) {
      const app = await session.pickApp(named)
      const { disableMethod } = await import('#providers/methods.ts')
      await performAs(session, disableMethod, undefined, { app, method: await pickMethod(methodName) })
      await printMethods(session, app)
    },
  },
  'method forget [app] [method]': {
    description:
      'erase an earlier version of credentials: payments opened with it can no longer be looked up or refunded',
    options: [['--version <number>', 'which one; method list shows them'], YES],
    examples: ['method forget 1 card --version 1'],
    async change(session, [named, methodName], options: ForgetOptions) {
      const app = await session.pickApp(named)
      await forgetOne(session, { app, method: await pickMethod(methodName) }, options)
    },
  },
  'method list [app]': {
    description: "an app's methods, and the versions of their credentials",
    examples: ['method list 1'],
    async run(session, [named]) {
      await printMethods(session, await session.pickApp(named))
    },
  },
}

/** The method; on a terminal it is picked from a menu if it is missing. */
async function pickMethod(methodName: string | undefined): Promise<Method> {
  const { METHODS } = await import('#providers/providers.ts')
  const choices = METHODS.map((value) => ({ value, name: value }))
  return requiredWord(methodName, '<method>', 'Which method?', choices)
}

async function readCredentials({ questions }: CredentialsSpec): Promise<Record<string, string>> {
  const { cliSecret } = await import('#config/environment.ts')
  const credentials: Record<string, string> = {}
  for (const { field, variable, message } of questions) {
    credentials[field] = await requiredSecret(variable, cliSecret(variable), message)
  }
  return credentials
}

/** Throws if the provider refuses the credentials, but not if it cannot be reached. */
async function checkCredentials({ ctx, out }: Session, spec: CredentialsSpec, credentials: unknown): Promise<void> {
  const check = await spec.check(ctx.config, credentials)
  if (check.result === 'refused') throw new AppError('invalid_request', `${check.message}; nothing was changed`)
  out.hint(check.message)
}

type ForgetOptions = Consent & Texts<'version'>

async function forgetOne(
  session: Session,
  { app, method }: { app: App; method: Method },
  options: ForgetOptions,
): Promise<void> {
  const { ctx, out } = session
  const { listMethods } = await import('#providers/list-methods.ts')
  const versions = (await listMethods(ctx, app)).find((each) => each.method === method)?.versions ?? []
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
    const closed = counted(closedSessions, 'open session')
    out.line(`version ${version} of the ${method} credentials is forgotten; ${closed} closed`)
  })
}

async function pickVersion(versions: readonly ListedVersion[], given: string | undefined): Promise<number> {
  const picked = await requiredChoice(given, '--version', 'Which version?', () =>
    versions
      .filter(({ forgotten }) => !forgotten)
      .map(({ version, created_at: since }) => ({ value: String(version), name: `${version}, of ${since}` })),
  )
  return numberOf(picked, '--version')
}

async function printMethods({ ctx, out }: Session, app: App): Promise<void> {
  const { listMethods } = await import('#providers/list-methods.ts')
  const { methodsNotReady } = await import('#providers/available-methods.ts')
  const methods = await listMethods(ctx, app)
  const lacking = await methodsNotReady(ctx.db, app)
  const shown = methods.map((each) => ({ app_id: app.id, sandbox: app.isSandbox, ...each }))
  out.result(shown, () => {
    out.line(banner(app))
    const rows = methods.map((each) => [each.method, each.enabled, each.has_credentials])
    out.table({ head: ['method', 'enabled', 'credentials'], rows })
    const versions = methods.flatMap(({ method, versions: all }) => all.map((version) => ({ method, ...version })))
    const columns = listOf(versions, [
      ['method', (each) => each.method],
      ['version', (each) => each.version],
      ['since (UTC)', (each) => each.created_at],
      ['state', stateOf],
      ['open sessions', (each) => each.open_sessions],
      ['refundable payments', (each) => each.refundable_payments],
    ])
    if (versions.length > 1) out.table(columns)
    for (const method of lacking) out.line(`${method} is not offered yet: billing-cli doctor says what it needs`)
  })
}

function stateOf({ forgotten, retired_at: retiredAt }: ListedVersion): string {
  if (forgotten) return 'forgotten'
  return retiredAt === null ? 'in use' : `replaced ${retiredAt}`
}
