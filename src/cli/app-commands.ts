import type { App } from '#apps/store.ts'
import type { AdvancedClock } from '#test-clock/advance-test-clock.ts'
import { settingOptions, settingsInput } from './app-settings.ts'
import { goAhead, required, requiredChoice } from './ask.ts'
import { stateCell } from './cells.ts'
import type { Consent } from './change.ts'
import { YES, type Commands, type Declaration, type Flags, type Texts } from './declaration.ts'
import { durationOf } from './duration-of.ts'
import { listOfService } from './list.ts'
import { oneOf } from './one-of.ts'
import type { Output } from './output.ts'
import { readTextFile } from './read-file.ts'
import { banner, markOf, performAs, printOf, type Session } from './session.ts'
import { SECOND_MS } from '#shared/time.ts'
import { UsageError } from './usage-error.ts'

/** `app …`: sellers' apps and their secrets. */
export const commands: Commands = {
  'app create': {
    description: 'register an app; its secret is shown only once',
    options: [
      ['--name <name>', 'what operators and customers call it'],
      ['--auth <kind>', "hmac (a seller's server) or identity (clients with a token)", oneOf('hmac', 'identity')],
      ['--sandbox', 'a sandbox app: test method, test clock, no real money'],
      ['--webhook-url <url>', 'where its webhooks go'],
    ],
    examples: [
      'app create --name Reader --auth hmac --sandbox',
      'app create --name Shop --auth hmac --webhook-url https://shop.example.com/hooks',
    ],
    async change(session, _args, options: Texts<'name' | 'auth' | 'webhookUrl'> & Flags<'sandbox'>) {
      const { out } = session
      const name = await required(options.name, '--name', 'Name of the app:')
      const auth = await requiredChoice(options.auth, '--auth', 'How does it authenticate?', () => [
        { value: 'hmac', name: "hmac: a seller's server that holds a secret" },
        { value: 'identity', name: 'identity: clients that hold an identity token' },
      ])
      const { createApp } = await import('#apps/create-app.ts')
      const input = { name, auth, sandbox: options.sandbox ?? false, webhook_url: options.webhookUrl }
      const created = await performAs(session, createApp, input, {})
      out.result(created, () => {
        out.fields({ ...created })
        if (created.api_secret !== null) out.line('Keep api_secret now: it is not shown again.')
        if (options.webhookUrl !== undefined)
          out.hint(`Webhooks go out once it has a secret: billing-cli app rotate-webhook-secret ${created.app_id}`)
      })
    },
  },
  'app list': listOfService({
    description: 'all apps',
    examples: ['app list', 'app list --json'],
    async rows({ ctx }) {
      const { listApps } = await import('#apps/store.ts')
      const { presentApp } = await import('#apps/present.ts')
      return (await listApps(ctx.db)).map(presentApp)
    },
    columns: () => [
      ['id', (row) => row['app_id']],
      ['', (row) => markOf(row['sandbox'] === true)],
      ['name', (row) => row['name']],
      ['auth', (row) => row['auth']],
      ['api_key', (row) => row['api_key']],
      ['state', (row) => stateCell(row['disabled'] === true ? 'disabled' : 'enabled')],
    ],
    none: () => 'No apps yet: billing-cli app create',
  }),
  'app show [app]': {
    description: 'one app, without its secrets',
    examples: ['app show 1', 'app show pk_test_0123456789abcdef01234567'],
    async run(session, [named]) {
      await printApp(session.out, await session.pickApp(named))
    },
  },
  'app update [app]': {
    description: 'change settings; an empty value removes an address',
    options: settingOptions,
    examples: [
      'app update 1 --webhook-url https://shop.example.com/hooks',
      'app update 1 --mail-from billing@shop.example.com',
      'app update 2 --return-origins https://reader.example.com,https://www.reader.example.com',
      'app update 2 --client-amounts on',
      'app update 1 --more-events transaction.refunded,subscription.expired',
      'app update 1 --time-zone Asia/Ho_Chi_Minh',
      "app update 1 --logo ./logo.svg --accent '#0b6b3a' --support help@shop.example.com",
    ],
    async change(session, [named], options: Readonly<Record<string, string>>) {
      const { updateApp } = await import('#apps/update-app.ts')
      const input = settingsInput(options)
      if (Object.keys(input).length === 0)
        throw new UsageError('nothing to change: give a setting, such as --name; app update --help lists them')
      const app = await session.pickApp(named)
      // What ended before is reported as the app had asked until now (R118).
      if ('more_events' in input)
        await (await import('#renewals/expire-due.ts')).expireDue(session.ctx, { appId: app.id })
      await printApp(session.out, await performAs(session, updateApp, input, { app }))
    },
  },
  'app disable [app]': switchApp('disable', 'refuse its API calls; payments already opened complete'),
  'app enable [app]': switchApp('enable', 'accept its API calls again'),
  'app rotate-secret [app]': {
    description: 'a new API secret, shown only once; the old one stops working immediately, or after --overlap',
    options: [['--overlap <duration>', 'how long the old secret stays valid, at most 7d: 24h'], YES],
    examples: ['app rotate-secret 1', 'app rotate-secret 1 --overlap 24h'],
    async change(session, [named], options: Consent & Texts<'overlap'>) {
      const { overlap } = options
      const overlap_seconds =
        overlap === undefined ? undefined : durationOf(overlap, '--overlap', { least: '1s', most: '7d' }) / SECOND_MS
      const app = await session.pickApp(named)
      if (app.apiSecret !== null && overlap === undefined) await confirmVoid(app, options)
      const { rotateSecret } = await import('#apps/rotate-secret.ts')
      printSecret(session, await performAs(session, rotateSecret, { overlap_seconds }, { app }))
    },
  },
  'app rotate-webhook-secret [app]': {
    description: 'a new webhook secret, shown only once; the old one stops working immediately',
    options: [
      ['--prepare', 'make the next secret, and go on signing with the present one'],
      ['--activate', 'sign with the prepared secret from now on; prints no secret'],
      YES,
    ],
    examples: [
      'app rotate-webhook-secret 1',
      'app rotate-webhook-secret 1 --prepare',
      'app rotate-webhook-secret 1 --activate',
    ],
    refuse(_args, { prepare, activate }: Flags<'prepare' | 'activate'>) {
      if (prepare && activate) throw new UsageError('--prepare and --activate exclude each other')
    },
    async change(session, [named], options: Consent & Flags<'prepare' | 'activate'>) {
      const app = await session.pickApp(named)
      if (app.webhookSecret !== null && !options.prepare) await confirmVoid(app, options)
      const secrets = await import('#apps/rotate-secret.ts')
      if (options.activate) {
        const activated = await performAs(session, secrets.activateWebhookSecret, undefined, { app })
        session.out.result(activated, () => session.out.line('The prepared secret signs from now on.'))
        return
      }
      const one = options.prepare ? secrets.prepareWebhookSecret : secrets.rotateWebhookSecret
      printSecret(session, await performAs(session, one, undefined, { app }))
      if (options.prepare)
        session.out.hint(`Once receivers accept it: billing-cli app rotate-webhook-secret ${app.id} --activate`)
    },
  },
  'app set-identity [app]': {
    description: 'who issues the identity tokens of an identity-token app',
    options: [
      ['--firebase-project <id>', 'Firebase project id'],
      ['--issuer <issuer>', 'OpenID Connect issuer'],
      ['--audience <audience>', 'OpenID Connect audience'],
      ['--jwks-url <url>', "address of the issuer's keys"],
    ],
    examples: [
      'app set-identity 2 --firebase-project my-project',
      'app set-identity 2 --issuer https://id.example.com --audience my-app --jwks-url https://id.example.com/jwks.json',
    ],
    async change(session, [named], options: IdentityOptions) {
      const { setIdentity } = await import('#apps/set-identity.ts')
      const app = await session.pickApp(named)
      const input = await identityInput(options)
      await printApp(session.out, await performAs(session, setIdentity, input, { app }))
    },
  },
  'app set-realtime [app]': {
    description: 'the realtime database that premium and free are written to',
    options: [
      ['--database-url <url>', 'address of the database'],
      ['--service-account <file>', 'JSON file of the service account; kept encrypted'],
      ['--path <template>', 'path of the node, with {uid}; users/{uid}/subscription at first'],
    ],
    examples: [
      'app set-realtime 2 --database-url https://my-project.firebaseio.com --service-account ./service-account.json',
    ],
    async change(session, [named], options: Texts<'databaseUrl' | 'serviceAccount' | 'path'>) {
      const app = await session.pickApp(named)
      const databaseUrl = await required(options.databaseUrl, '--database-url')
      const file = await required(options.serviceAccount, '--service-account')
      const { setRealtime } = await import('#apps/set-realtime.ts')
      const input = { databaseUrl, serviceAccount: readTextFile(file), path: options.path }
      await printApp(session.out, await performAs(session, setRealtime, input, { app }))
    },
  },
  'app clock [app]': {
    description: "move a sandbox app's own time forward, and run its reminders and expiry",
    options: [
      ['--advance <duration>', 'such as 36h or 30d'],
      ['--now <time>', 'YYYY-MM-DD HH:MM:SS in UTC'],
    ],
    examples: ['app clock 1 --advance 30d', "app clock 1 --now '2026-12-01 00:00:00'", 'app clock 1'],
    async change({ ctx, out, caller, pickApp }, [named], options: Texts<'advance' | 'now'>) {
      const { advanceTestClock, readTestClock } = await import('#test-clock/advance-test-clock.ts')
      const app = await pickApp(named)
      const input = clockInput(options)
      const answer: AdvancedClock =
        input === null ? readTestClock(ctx, app) : await advanceTestClock(ctx, caller, app, input)
      out.result(answer, () => {
        out.line(`${banner(app)}: it is ${answer.now} there`)
        for (const { external_ref: ref, reminder_day: day, claimed_at: at } of answer.pending ?? [])
          out.line(`pending: reminder ${day} of ${ref}, taken up by another daemon at ${at} UTC`)
      })
    },
  },
  'app export [app]': {
    description:
      "write all of an app's data into a folder, as JSON Lines and CSV, without secrets; or its sales alone, for bookkeeping",
    options: [
      ['--sales', 'only sales.csv: a row for each payment and each refund, in decimals and the zone of the app'],
      ['--out <folder>', 'the target folder; created if it does not exist'],
      ['--dir <folder>', 'the same as --out'],
    ],
    examples: ['app export 1 --out ./export-2026-11', 'app export 1 --sales --out ./sales-2026'],
    refuse(_args, { out, dir }: Texts<'out' | 'dir'>) {
      if (out !== undefined && dir !== undefined) throw new UsageError('--out and --dir are the same: give one')
    },
    async run({ ctx, out, pickApp }, [named], options: Texts<'out' | 'dir'> & Flags<'sales'>) {
      const app = await pickApp(named)
      const folder = await required(options.out ?? options.dir, '--out', 'Folder:')
      const { exportApp } = await import('#reports/export-app.ts')
      const { exportSales } = await import('#reports/sales/export-sales.ts')
      const counts = options.sales
        ? { sales: await exportSales(ctx, app, folder, (rows) => out.progress(`sales: ${rows} rows`)) }
        : await exportApp(ctx, app, folder, (name, rows) => out.progress(`${name}: ${rows} rows`))
      out.result(counts, () => {
        out.line(banner(app))
        out.table({ head: ['table', 'rows'], rows: Object.entries(counts), none: 'nothing' })
      })
    },
  },
}

function switchApp(name: 'disable' | 'enable', description: string): Declaration {
  const isDisabled = name === 'disable'
  return {
    description,
    options: [YES],
    examples: [`app ${name} 1`],
    async change(session, [named], { yes, dryRun }: Consent) {
      const { setAppDisabled } = await import('#apps/update-app.ts')
      const app = await session.pickApp(named)
      if (isDisabled) await goAhead(yes ?? dryRun, `Disable ${banner(app)}?`)
      await printApp(session.out, await performAs(session, setAppDisabled, undefined, { app, isDisabled }))
    },
  }
}

/** The API's body for `app clock`; null if the command only reads the time. */
function clockInput({ advance, now }: Texts<'advance' | 'now'>): object | null {
  if (advance !== undefined && now !== undefined) throw new UsageError('--advance and --now exclude each other')
  if (now !== undefined) return { now }
  return advance === undefined ? null : { advance_seconds: durationOf(advance, '--advance') / SECOND_MS }
}

async function confirmVoid(app: App, { yes, dryRun }: Consent): Promise<void> {
  await goAhead(yes ?? dryRun, `${banner(app)}: The old secret stops working immediately. Continue?`)
}

function printSecret({ out }: Session, secret: object): void {
  out.result(secret, () => {
    out.fields({ ...secret })
    out.line('Keep it now: it is not shown again.')
  })
}

type IdentityOptions = Texts<'firebaseProject' | 'issuer' | 'audience' | 'jwksUrl'>

async function identityInput({ firebaseProject, issuer, audience, jwksUrl }: IdentityOptions): Promise<object> {
  const isOidc = issuer !== undefined || audience !== undefined || jwksUrl !== undefined
  if (firebaseProject !== undefined && isOidc)
    throw new UsageError('--firebase-project and --issuer, --audience, --jwks-url exclude each other')
  const given = firebaseProject !== undefined ? 'firebase' : isOidc ? 'oidc' : undefined
  const provider = await requiredChoice(given, '--firebase-project or --issuer', 'Who issues the tokens?', () => [
    { value: 'firebase', name: 'Firebase' },
    { value: 'oidc', name: 'another issuer (OpenID Connect)' },
  ])
  if (provider === 'firebase') return { provider, projectId: await required(firebaseProject, '--firebase-project') }
  return {
    provider,
    issuer: await required(issuer, '--issuer'),
    audience: await required(audience, '--audience'),
    jwksUrl: await required(jwksUrl, '--jwks-url'),
  }
}

async function printApp(out: Output, app: App): Promise<void> {
  const { presentApp } = await import('#apps/present.ts')
  printOf(out, app, presentApp(app))
}
