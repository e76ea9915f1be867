import type { Command } from 'commander'
import type { App } from '#apps/store.ts'
import type { AdvancedClock } from '#renewals/advance-test-clock.ts'
import { goAhead, required, requiredChoice } from './ask.ts'
import { stateCell } from './cells.ts'
import { inChange, withDryRun } from './change.ts'
import { withExamples } from './examples.ts'
import { oneOf } from './one-of.ts'
import type { Output } from './output.ts'
import { addPageOptions, pageInput } from './page-options.ts'
import { banner, inSession, performAs } from './session.ts'
import { registerExport } from './transfer-commands.ts'
import { UsageError } from './usage-error.ts'

/** `app …`: sellers' apps and their secrets. */
export function registerAppCommands(program: Command): void {
  const app = program.command('app').description("sellers' apps, their secrets and settings")
  registerCreate(app)
  registerReads(app)
  registerUpdate(app)
  registerSwitches(app)
  registerSecrets(app)
  registerIdentity(app)
  registerClock(app)
  registerExport(app)
}

interface CreateOptions {
  readonly name?: string
  readonly auth?: string
  readonly sandbox?: boolean
  readonly webhookUrl?: string
}

function registerCreate(app: Command): void {
  const create = app
    .command('create')
    .description('register an app; its secret is shown only once')
    .option('--name <name>', 'what operators and customers call it')
    .option(
      '--auth <kind>',
      "hmac (a seller's server) or identity (clients with an identity token)",
      oneOf('hmac', 'identity'),
    )
    .option('--sandbox', 'a sandbox app: test method, test clock, no real money')
    .option('--webhook-url <url>', 'where its webhooks go')
    .action(async (options: CreateOptions, command: Command) => {
      await inChange(command, async (session) => {
        const name = await required(options.name, '--name', 'Name of the app:')
        const auth = await requiredChoice(options.auth, '--auth', 'How does it authenticate?', () =>
          Promise.resolve([
            { value: 'hmac', name: "hmac: a seller's server that holds a secret" },
            { value: 'identity', name: 'identity: clients that hold an identity token' },
          ]),
        )
        const { createApp } = await import('#apps/create-app.ts')
        const webhook = options.webhookUrl === undefined ? {} : { webhook_url: options.webhookUrl }
        const created = await performAs(
          session,
          createApp,
          { name, auth, sandbox: options.sandbox ?? false, ...webhook },
          {},
        )
        const { out } = session
        out.result(created, () => {
          out.fields({ ...created })
          if (created.api_secret !== null) out.line('Keep api_secret now: it is not shown again.')
          if (options.webhookUrl !== undefined)
            out.hint(`Webhooks go out once it has a secret: billing-cli app rotate-webhook-secret ${created.app_id}`)
        })
      })
    })
  withDryRun(create)
  withExamples(
    create,
    'app create --name Reader --auth hmac --sandbox',
    'app create --name Shop --auth hmac --webhook-url https://shop.example.com/hooks',
  )
}

function registerReads(app: Command): void {
  const list = app
    .command('list')
    .description('all apps')
    .action(async (_options: object, command: Command) => {
      await inSession(command, async ({ ctx, out }) => {
        const [{ allApps }, { presentApp }] = await Promise.all([
          import('#apps/find-app.ts'),
          import('#apps/present.ts'),
        ])
        const apps = await allApps(ctx)
        out.result(apps.map(presentApp), () => {
          const rows = apps.map((row) => [
            row.id,
            row.isSandbox ? '[TEST]' : '[LIVE]',
            row.name,
            row.auth,
            row.apiKey,
            stateCell(row.disabledAt === null ? 'enabled' : 'disabled'),
          ])
          out.table({
            head: ['id', '', 'name', 'auth', 'api_key', 'state'],
            rows,
            none: 'No apps yet: billing-cli app create',
          })
        })
      })
    })
  withExamples(list, 'app list', 'app list --json')
  const show = app
    .command('show [app]')
    .description('one app, without its secrets')
    .action(async (named: string | undefined, _options: object, command: Command) => {
      await inSession(command, async (session) => printApp(session.out, await session.app(named)))
    })
  withExamples(show, 'app show 1', 'app show pk_test_0123456789abcdef01234567')
}

interface UpdateOptions extends Readonly<Record<string, unknown>> {
  readonly name?: string
  readonly webhookUrl?: string
  readonly mailFrom?: string
  readonly path?: string
  readonly clientAmounts?: 'on' | 'off'
  readonly returnOrigins?: string
  readonly moreEvents?: string
}

function registerUpdate(app: Command): void {
  const update = app
    .command('update [app]')
    .description('change settings; an empty value removes an address')
    .option('--name <name>', 'what operators and customers call it')
    .option('--webhook-url <url>', 'where its webhooks go')
    .option('--mail-from <address>', 'sender of its mails')
    .option('--path <template>', 'path of the realtime node, with {uid}')
    .option(
      '--client-amounts <on_or_off>',
      'whether clients with an identity token may open one-time payments, whose amount they choose',
      oneOf('on', 'off'),
    )
    .option(
      '--return-origins <origins>',
      'comma-separated origins that success_url and cancel_url of such clients must have',
    )
    .option(
      '--more-events <types>',
      'webhooks beside the usual ones: transaction.refunded, transaction.flagged, subscription.expired, comma-separated, all or none',
    )
  addPageOptions(update).action(async (named: string | undefined, options: UpdateOptions, command: Command) => {
    await inChange(command, async (session) => {
      const { updateApp } = await import('#apps/update-app.ts')
      const input = {
        ...(options.name === undefined ? {} : { name: options.name }),
        ...(options.webhookUrl === undefined ? {} : { webhook_url: options.webhookUrl || null }),
        ...(options.mailFrom === undefined ? {} : { mail_from: options.mailFrom || null }),
        ...(options.path === undefined ? {} : { path: options.path }),
        ...(options.clientAmounts === undefined ? {} : { client_amounts: options.clientAmounts === 'on' }),
        ...(options.returnOrigins === undefined ? {} : { return_origins: originsOf(options.returnOrigins) }),
        ...(options.moreEvents === undefined ? {} : { more_events: await eventsOf(options.moreEvents) }),
        ...pageInput(options),
      }
      if (Object.keys(input).length === 0)
        throw new UsageError('nothing to change: give a setting, such as --name; app update --help lists them')
      await printApp(session.out, await performAs(session, updateApp, input, { app: await session.app(named) }))
    })
  })
  withDryRun(update)
  withExamples(
    update,
    'app update 1 --webhook-url https://shop.example.com/hooks',
    'app update 1 --mail-from billing@shop.example.com',
    'app update 2 --return-origins https://reader.example.com,https://www.reader.example.com',
    'app update 2 --client-amounts on',
    'app update 1 --more-events transaction.refunded,subscription.expired',
    'app update 1 --time-zone Asia/Ho_Chi_Minh',
    "app update 1 --logo ./logo.svg --accent '#0b6b3a' --support help@shop.example.com",
  )
}

async function eventsOf(given: string): Promise<readonly string[]> {
  const { MORE_EVENTS } = await import('#apps/more-events.ts')
  if (given === 'all') return MORE_EVENTS
  return given === 'none' || given === '' ? [] : given.split(',').map((type) => type.trim())
}

/** Null for an empty value, which removes the limit. */
function originsOf(given: string): string[] | null {
  return given === '' ? null : given.split(',').map((origin) => origin.trim())
}

function registerSwitches(app: Command): void {
  for (const name of ['disable', 'enable'] as const) {
    const isDisabling = name === 'disable'
    const command = app
      .command(`${name} [app]`)
      .description(
        isDisabling ? 'refuse its API calls; payments already opened complete' : 'accept its API calls again',
      )
      .option('--yes', 'do not ask')
      .action(async (named: string | undefined, options: { yes?: boolean; dryRun?: boolean }, self: Command) => {
        await inChange(self, async (session) => {
          const { setAppDisabled } = await import('#apps/update-app.ts')
          const found = await session.app(named)
          if (isDisabling) await goAhead(options.yes ?? options.dryRun, `Disable ${banner(found)}?`)
          await printApp(
            session.out,
            await performAs(session, setAppDisabled, undefined, { app: found, isDisabled: isDisabling }),
          )
        })
      })
    withDryRun(command)
    withExamples(command, `app ${name} 1`)
  }
}

function registerSecrets(app: Command): void {
  const rotate = (
    name: string,
    description: string,
    hasSecret: (found: App) => boolean,
    run: (session: Parameters<Parameters<typeof inSession>[1]>[0], found: App) => Promise<Record<string, string>>,
  ) => {
    const command = app
      .command(`${name} [app]`)
      .description(description)
      .option('--yes', 'do not ask')
      .action(async (named: string | undefined, options: { yes?: boolean; dryRun?: boolean }, self: Command) => {
        await inChange(self, async (session) => {
          const found = await session.app(named)
          const question = `${banner(found)}: The old secret stops working immediately. Continue?`
          if (hasSecret(found)) await goAhead(options.yes ?? options.dryRun, question)
          const secret = await run(session, found)
          session.out.result(secret, () => {
            session.out.fields(secret)
            session.out.line('Keep it now: it is not shown again.')
          })
        })
      })
    withDryRun(command)
    withExamples(command, `app ${name} 1`)
  }
  rotate(
    'rotate-secret',
    'a new API secret, shown only once; the old one stops working immediately',
    ({ apiSecret }) => apiSecret !== null,
    async (session, found) => {
      const { rotateSecret } = await import('#apps/rotate-secret.ts')
      return { ...(await performAs(session, rotateSecret, undefined, { app: found })) }
    },
  )
  rotate(
    'rotate-webhook-secret',
    'a new webhook secret, shown only once; the old one stops working immediately',
    ({ webhookSecret }) => webhookSecret !== null,
    async (session, found) => {
      const { rotateWebhookSecret } = await import('#apps/rotate-secret.ts')
      return { ...(await performAs(session, rotateWebhookSecret, undefined, { app: found })) }
    },
  )
}

interface IdentityOptions {
  readonly firebaseProject?: string
  readonly issuer?: string
  readonly audience?: string
  readonly jwksUrl?: string
}

interface RealtimeOptions {
  readonly databaseUrl?: string
  readonly serviceAccount?: string
  readonly path?: string
}

function registerIdentity(app: Command): void {
  const identity = app
    .command('set-identity [app]')
    .description('who issues the identity tokens of an identity-token app')
    .option('--firebase-project <id>', 'Firebase project id')
    .option('--issuer <issuer>', 'OpenID Connect issuer')
    .option('--audience <audience>', 'OpenID Connect audience')
    .option('--jwks-url <url>', "address of the issuer's keys")
    .action(async (named: string | undefined, options: IdentityOptions, command: Command) => {
      await inChange(command, async (session) => {
        const { setIdentity } = await import('#apps/set-identity.ts')
        const found = await session.app(named)
        const input = await identityInput(options)
        await printApp(session.out, await performAs(session, setIdentity, input, { app: found }))
      })
    })
  withDryRun(identity)
  withExamples(
    identity,
    'app set-identity 2 --firebase-project my-project',
    'app set-identity 2 --issuer https://id.example.com --audience my-app --jwks-url https://id.example.com/jwks.json',
  )
  const realtime = app
    .command('set-realtime [app]')
    .description('the realtime database that premium and free are written to')
    .option('--database-url <url>', 'address of the database')
    .option('--service-account <file>', 'JSON file of the service account; kept encrypted')
    .option('--path <template>', 'path of the node, with {uid}', 'users/{uid}/subscription')
    .action(async (named: string | undefined, options: RealtimeOptions, command: Command) => {
      await inChange(command, async (session) => {
        const found = await session.app(named)
        const databaseUrl = await required(options.databaseUrl, '--database-url')
        const file = await required(options.serviceAccount, '--service-account')
        const [{ setRealtime }, { readTextFile }] = await Promise.all([
          import('#apps/set-realtime.ts'),
          import('./read-file.ts'),
        ])
        const input = { databaseUrl, serviceAccount: readTextFile(file), path: options.path ?? '' }
        await printApp(session.out, await performAs(session, setRealtime, input, { app: found }))
      })
    })
  withDryRun(realtime)
  withExamples(
    realtime,
    'app set-realtime 2 --database-url https://my-project.firebaseio.com --service-account ./service-account.json',
  )
}

async function identityInput(options: IdentityOptions): Promise<object> {
  const { firebaseProject, issuer, audience, jwksUrl } = options
  const isOidc = issuer !== undefined || audience !== undefined || jwksUrl !== undefined
  if (firebaseProject !== undefined && isOidc)
    throw new UsageError('--firebase-project and --issuer, --audience, --jwks-url exclude each other')
  if (firebaseProject !== undefined) return { provider: 'firebase', projectId: firebaseProject }
  const provider = isOidc
    ? 'oidc'
    : await requiredChoice(undefined, '--firebase-project or --issuer', 'Who issues the tokens?', () =>
        Promise.resolve([
          { value: 'firebase', name: 'Firebase' },
          { value: 'oidc', name: 'another issuer (OpenID Connect)' },
        ]),
      )
  if (provider === 'firebase') return { provider, projectId: await required(undefined, '--firebase-project') }
  return {
    provider,
    issuer: await required(issuer, '--issuer'),
    audience: await required(audience, '--audience'),
    jwksUrl: await required(jwksUrl, '--jwks-url'),
  }
}

function registerClock(app: Command): void {
  const clock = app
    .command('clock [app]')
    .description("move a sandbox app's own time forward, and run its reminders and expiry")
    .option('--advance <duration>', 'such as 36h or 30d')
    .option('--now <time>', 'YYYY-MM-DD HH:MM:SS in UTC')
    .action(async (named: string | undefined, options: { advance?: string; now?: string }, command: Command) => {
      await inChange(command, async ({ ctx, out, caller, app: pick }) => {
        const [{ advanceTestClock, readTestClock }, { clockInput }] = await Promise.all([
          import('#renewals/advance-test-clock.ts'),
          import('./clock-input.ts'),
        ])
        const found = await pick(named)
        const input = clockInput(options)
        const answer: AdvancedClock =
          input === null ? readTestClock(ctx, found) : await advanceTestClock(ctx, caller, found, input)
        out.result(answer, () => {
          out.line(`${banner(found)}: it is ${answer.now} there`)
          for (const { external_ref, reminder_day, claimed_at } of answer.pending ?? []) {
            out.line(
              `pending: reminder ${reminder_day} of ${external_ref}, taken up by another daemon at ${claimed_at} UTC`,
            )
          }
        })
      })
    })
  withDryRun(clock)
  withExamples(clock, 'app clock 1 --advance 30d', "app clock 1 --now '2026-12-01 00:00:00'", 'app clock 1')
}

async function printApp(out: Output, found: App): Promise<void> {
  const { presentApp } = await import('#apps/present.ts')
  const shown = presentApp(found)
  out.result(shown, () => {
    out.line(banner(found))
    out.fields(shown)
  })
}
