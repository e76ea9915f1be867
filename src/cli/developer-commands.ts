import type { UnsignedCall } from '#apps/sign-call.ts'
import type { App } from '#apps/store.ts'
import type { Forwarded } from '#webhooks/forward-events.ts'
import type { Event } from '#webhooks/store.ts'
import { required, requiredWord } from './ask.ts'
import { printEffects } from './change.ts'
import type { Commands, Flags, Texts } from './declaration.ts'
import { durationOf } from './duration-of.ts'
import { numberOf } from './number-of.ts'
import { readTextFile } from './read-file.ts'
import { banner, fail, type Session } from './session.ts'
import { ERROR_CODES, type ErrorCode } from '#shared/errors.ts'
import { addMs } from '#shared/time.ts'
import { UsageError } from './usage-error.ts'

const REQUEST_DEADLINE_MS = 30_000

/** `listen`, `trigger`, `request`: tools for a seller's developers. */
export const commands: Commands = {
  'listen [app]': {
    options: [
      ['--forward-to <url>', 'post each event there, signed as real deliveries are'],
      ['--since <age>', 'begin with the events of the last 30m, 2h or 7d'],
      ['--events <types>', 'only these: subscription.*,transaction.completed'],
      ['--count <n>', 'end after this many events'],
    ],
    examples: [
      'listen 1 --forward-to http://127.0.0.1:3000/hooks',
      'listen 1 --since 2h --events subscription.* --forward-to http://127.0.0.1:3000/hooks',
    ],
    refuse: refuseOwnDatabase,
    run: (session, [named], options: ListenOptions) => listenTo(session, named, options),
  },
  'trigger [app] [event]': {
    options: [
      ['--email <address>', 'where a triggered reminder is sent'],
      ['--dry-run', 'only show what would happen'],
    ],
    examples: ['trigger 1 subscription.updated', 'trigger 1 subscription.renewal_reminder_sent --email me@example.com'],
    async run({ ctx, out, caller, pickApp }, [named, eventType], { email, dryRun }: TriggerOptions) {
      const { previewTrigger, triggerEvent } = await import('#demo/trigger-event.ts')
      const { EVENTS } = await import('#webhooks/events.ts')
      const types = Object.keys(EVENTS) as (keyof typeof EVENTS)[]
      const app = await pickApp(named)
      const choices = types.map((value) => ({ value, name: value, description: EVENTS[value].when }))
      const type = await requiredWord(eventType, '<event>', 'Which event?', choices)
      const address =
        type === 'subscription.renewal_reminder_sent'
          ? await required(email, '--email', 'Where is the reminder sent?')
          : email
      const about = { app_id: app.id, sandbox: app.isSandbox }
      if (dryRun) {
        const effects = previewTrigger(app, type, { email: address })
        printEffects(out, { banners: [banner(app)], answer: about, effects })
        return
      }
      const done = await triggerEvent(ctx, caller, app, type, { email: address })
      out.result({ ...about, ...done }, () => {
        out.line(`${banner(app)}${done.external_ref === null ? '' : `: ${done.external_ref}`}`)
        const rows = done.events.map((event) => [event.id, event.event_type])
        out.table({ head: ['id', 'event'], rows, none: 'no events' })
      })
    },
  },
  'request [app] [method] [path]': {
    options: [
      ['--data <json>', 'the body; @file reads a file, - standard input'],
      ['--url <address>', 'where the service is; BILLING_BASE_URL by default'],
      ['--dry-run', 'only show what would be sent'],
    ],
    examples: [
      'request 1 GET /plans?status=active',
      `request 1 POST /customers --data '{"name":"An","email":"an@example.com"}'`,
    ],
    async run(session, [named, method, path], options: RequestOptions) {
      const app = await session.pickApp(named)
      const call = {
        method: (await required(method, '<method>')).toUpperCase(),
        target: targetOf(await required(path, '<path>')),
        body: bodyOf(options.data),
      }
      await sendCall(session, app, call, options)
    },
  },
}

type TriggerOptions = Texts<'email'> & Flags<'dryRun'>

/** Without a daemon, no event would ever come. */
async function refuseOwnDatabase(): Promise<void> {
  const { loadConfig } = await import('#config/config.ts')
  const { isEmbeddedUp } = await import('#embedded/setup.ts')
  const { databaseUrl, home } = loadConfig()
  if (databaseUrl !== null || isEmbeddedUp(home)) return
  await fail(
    'invalid_request',
    `listen reads the database of a running Paygate, and none runs with BILLING_HOME=${home}: set BILLING_HOME or BILLING_DATABASE_URL as the daemon has it. ` +
      'Without access to the server, npx paygate listen of paygate-client needs only the keys of the app',
  )
}

type ListenOptions = Texts<'forwardTo' | 'since' | 'events' | 'count'>

async function listenTo(
  { ctx, out, pickApp }: Session,
  named: string | undefined,
  options: ListenOptions,
): Promise<void> {
  const { eventTypesOf, followedView, followEvents } = await import('#webhooks/follow-events.ts')
  const { openForwarder } = await import('#webhooks/forward-events.ts')
  let left = options.count === undefined ? Infinity : numberOf(options.count, '--count')
  const isSelected = eventTypesOf(options.events?.split(',').map((type) => type.trim()) ?? [])
  const { forwardTo } = options
  if (forwardTo !== undefined && !/^https?:\/\//.test(forwardTo))
    throw new UsageError('--forward-to must be an http(s) address')
  const since = options.since === undefined ? null : addMs(ctx.clock.now(), -durationOf(options.since, '--since'))
  const app = await pickApp(named)
  const forwarder = forwardTo === undefined ? null : openForwarder(ctx, app, forwardTo)
  const stop = new AbortController()
  const end = (): void => stop.abort()
  process.once('SIGINT', end).once('SIGTERM', end)
  // The reader of a pipe has closed it: nobody sees the events any more.
  process.stdout.once('error', end)
  out.hint(`${banner(app)}: listening${forwardTo === undefined ? '' : `, forwarding to ${forwardTo}`}; Ctrl-C ends`)
  try {
    for await (const event of followEvents(ctx, app, { since, signal: stop.signal })) {
      if (!isSelected(event.eventType)) continue
      const answer = forwarder === null ? null : await forwarder.send(event)
      const view = followedView(event, answer)
      out.result(view, () => out.line(lineOf(event, view.id, view.at, answer)))
      left -= 1
      if (left === 0) break
    }
  } finally {
    process.off('SIGINT', end).off('SIGTERM', end)
    process.stdout.off('error', end)
    forwarder?.close()
  }
}

function lineOf({ eventType, externalRef }: Event, id: string, at: string, answer: Forwarded | null): string {
  const about = externalRef === null ? '' : `  ${externalRef}`
  return `${at.slice(11)}  ${id}  ${eventType}${about}${answer === null ? '' : `  ${answerOf(answer)}`}`
}

function answerOf({ http_status: status, error, duration_ms: ms, answer }: Forwarded): string {
  if (error === null) return `${status ?? ''}  ${ms} ms`
  return `${error}  ${ms} ms${answer === null || answer === '' ? '' : `: ${answer.slice(0, 200)}`}`
}

type RequestOptions = Texts<'data' | 'url'> & Flags<'dryRun'>

async function sendCall({ ctx, out }: Session, app: App, call: UnsignedCall, options: RequestOptions): Promise<void> {
  const { signCall } = await import('#apps/sign-call.ts')
  const { requestEndpoint } = await import('#http/outbound/request-endpoint.ts')
  if (!/^(GET|POST|PUT|PATCH)$/.test(call.method)) throw new UsageError('method must be GET, POST, PUT or PATCH')
  const base = (options.url ?? ctx.config.baseUrl).replace(/(?<!\/)\/+$/, '')
  if (!URL.canParse(base)) throw new UsageError('--url must be an http(s) address')
  const headers = signCall(ctx, app, call)
  const url = base + call.target
  if (options.dryRun) {
    const shown = { dry_run: true, method: call.method, url, headers, body: call.body.toString('utf8') }
    out.result(shown, () => {
      out.line(`${call.method} ${url}`)
      for (const [name, value] of Object.entries(headers)) out.line(`${name}: ${value}`)
      if (call.body.length > 0) out.lines(`\n${call.body.toString('utf8')}`)
    })
    return
  }
  const answer = await requestEndpoint({
    method: call.method as 'GET',
    url,
    headers,
    ...(call.body.length === 0 ? {} : { body: call.body }),
    deadlineMs: REQUEST_DEADLINE_MS,
  })
  const body = parsed(answer.body)
  out.result({ status: answer.status, body }, () => {
    out.hint(`${call.method} ${url}: ${answer.status}`)
    out.lines(typeof body === 'string' ? body : JSON.stringify(body, null, 2))
  })
  if (answer.status >= 400) await fail(codeIn(body), `the service answered ${answer.status}`)
}

/** The code of the API's error; that of an answer which is none, such as a proxy's, is `invalid_request`. */
function codeIn(body: unknown): ErrorCode {
  const code = (body as { error?: { code?: unknown } } | null)?.error?.code
  return ERROR_CODES.find((each) => each === code) ?? 'invalid_request'
}

/** `/plans` is short for `/api/v1/plans`. */
function targetOf(path: string): string {
  if (!path.startsWith('/')) throw new UsageError('path must begin with /')
  return path.startsWith('/api/') ? path : `/api/v1${path}`
}

function bodyOf(data: string | undefined): Buffer {
  if (data === undefined) return Buffer.alloc(0)
  const isFile = data === '-' || data.startsWith('@')
  return Buffer.from(isFile ? readTextFile(data.replace(/^@/, '')) : data)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}
