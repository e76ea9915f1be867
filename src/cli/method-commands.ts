import type { Command } from 'commander'
import type { Credentials } from '#apps/methods.ts'
import type { App } from '#apps/store.ts'
import type { Method } from '#providers/provider.ts'
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
    .description('enable card, payos, bank_transfer or test; credentials come by prompt or environment')
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
          const credentials = name === 'card' || name === 'payos' ? await readCredentials(name) : undefined
          if (credentials && options.skipCheck !== true) await checkCredentials(session, credentials)
          const { enableMethod } = await import('#apps/methods.ts')
          await enableMethod(session.ctx, session.actor, app, name, credentials?.values)
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
        const { disableMethod } = await import('#apps/methods.ts')
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

/** The method; on a terminal one of the four where it is missing. */
async function pickMethod(wanted: string | undefined): Promise<Method> {
  const { METHODS } = await import('#providers/provider.ts')
  const picked = await requiredChoice(wanted, '<method>', 'Which method?', () =>
    Promise.resolve(METHODS.map((method) => ({ value: method, name: method }))),
  )
  const known = METHODS.find((method) => method === picked)
  if (!known) throw new UsageError(`<method> must be one of ${METHODS.join(', ')}`)
  return known
}

type GivenCredentials =
  | { readonly method: 'card'; readonly values: Credentials['card'] }
  | { readonly method: 'payos'; readonly values: Credentials['payos'] }

async function readCredentials(method: 'card' | 'payos'): Promise<GivenCredentials> {
  const { cliSecret } = await import('#config.ts')
  const ask = (variable: string, message: string) => requiredSecret(variable, cliSecret(variable), message)
  if (method === 'card') {
    const secretKey = await ask('BILLING_CLI_STRIPE_SECRET_KEY', 'Stripe secret key (sk_… or rk_…):')
    const webhookSecret = await ask('BILLING_CLI_STRIPE_WEBHOOK_SECRET', 'Stripe webhook signing secret (whsec_…):')
    return { method, values: { secretKey, webhookSecret } }
  }
  const clientId = await ask('BILLING_CLI_PAYOS_CLIENT_ID', 'PayOS client id:')
  const apiKey = await ask('BILLING_CLI_PAYOS_API_KEY', 'PayOS API key:')
  const checksumKey = await ask('BILLING_CLI_PAYOS_CHECKSUM_KEY', 'PayOS checksum key:')
  return { method, values: { clientId, apiKey, checksumKey } }
}

/** Throws where the provider refuses the credentials; a provider that cannot be reached refuses nothing. */
async function checkCredentials({ ctx, out }: Session, given: GivenCredentials): Promise<void> {
  const { checkCardCredentials } = await import('#providers/card/check-credentials.ts')
  const { checkPayosCredentials } = await import('#providers/payos/check-credentials.ts')
  const check =
    given.method === 'card'
      ? await checkCardCredentials(ctx.config, given.values)
      : await checkPayosCredentials(ctx.config, given.values)
  if (check.result === 'refused') throw new Error(`${check.message}; nothing was changed`)
  out.hint(check.message)
}

async function printMethods({ ctx, out }: Session, app: App): Promise<void> {
  const [{ listPaymentMethods }, { METHODS }] = await Promise.all([
    import('#apps/store.ts'),
    import('#providers/provider.ts'),
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
