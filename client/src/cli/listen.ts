import { parseArgs } from 'node:util'
import { Paygate } from '../paygate.ts'
import type { Event } from '../types.ts'
import { parseTime } from '../times.ts'
import { openForwarder, type Answer, type Forwarder } from './forward.ts'
import { printable, printableJson } from './printable.ts'
import { readSettings, type Settings } from './settings.ts'
import { UsageError } from './usage-error.ts'

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

interface ListenOptions {
  readonly from: Date | null
  readonly patterns: readonly string[]
  readonly count: number
  readonly forwarder: Forwarder | null
  readonly isJson: boolean
}

/** Shows events as they happen, and forwards them, until Ctrl-C or `--count`. */
export async function listen(words: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...words],
    options: {
      'forward-to': { type: 'string' },
      since: { type: 'string' },
      events: { type: 'string' },
      count: { type: 'string' },
      json: { type: 'boolean' },
      'env-file': { type: 'string' },
    },
  })
  const [ageMs, count] = [ageOf(values.since), countOf(values.count)]
  const settings = readSettings(values['env-file'])
  const to = values['forward-to']
  const forwarder = to === undefined ? null : openForwarder(to, settings.webhookSecret)
  const paygate = new Paygate(settings)
  const patterns = (values.events ?? '').split(',').flatMap((pattern) => pattern.trim() || [])
  await checkAccess(paygate, patterns)
  const from = ageMs === null ? null : new Date((await appTime(paygate, settings)) - ageMs)
  process.stderr.write(`listening${to === undefined ? '' : `, forwarding to ${to}`}; Ctrl-C ends\n`)
  await show(paygate, { from, patterns, count, forwarder, isJson: values.json === true })
  return 0
}

async function show(paygate: Paygate, { from, patterns, count, forwarder, isJson }: ListenOptions): Promise<void> {
  const stop = new AbortController()
  const end = (): void => stop.abort()
  process.once('SIGINT', end).once('SIGTERM', end)
  let left = count
  for await (const { event } of paygate.events.follow({ from, signal: stop.signal })) {
    if (!isSelected(event.event_type, patterns)) continue
    const answer = forwarder === null ? null : await forwarder(event)
    process.stdout.write(`${isJson ? printableJson({ ...event, forwarded: answer }) : lineOf(event, answer)}\n`)
    left -= 1
    if (left === 0) break
  }
  process.off('SIGINT', end).off('SIGTERM', end)
}

/** Throws what the service refuses: wrong keys, and a type that there is not, since it knows them all. */
async function checkAccess(paygate: Paygate, patterns: readonly string[]): Promise<void> {
  await paygate.events.list({ limit: 1 })
  for (const pattern of patterns)
    if (!pattern.endsWith('*')) await paygate.events.list({ event_type: pattern, limit: 1 })
}

function isSelected(type: string, patterns: readonly string[]): boolean {
  if (patterns.length === 0) return true
  return patterns.some((pattern) => (pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern))
}

/** A sandbox app has a clock of its own, by which its events are dated. */
async function appTime(paygate: Paygate, { apiKey }: Settings): Promise<number> {
  if (!apiKey.startsWith('pk_test_')) return Date.now()
  return parseTime((await paygate.testClock.get()).now).getTime()
}

function lineOf({ created_at, id, event_type, data }: Event, answer: Answer | null): string {
  const about = 'external_ref' in data && typeof data.external_ref === 'string' ? [data.external_ref] : []
  const answered = answer === null ? [] : [answer.error ?? String(answer.http_status), `${answer.duration_ms} ms`]
  return [created_at.slice(11), id, event_type, ...about, ...answered].map(printable).join('  ')
}

/** `30m`, `2h`, `7d` in milliseconds; null if there is none. */
function ageOf(text: string | undefined): number | null {
  if (text === undefined) return null
  const [, count = '', unit = ''] = /^(\d{1,4})([mhd])$/.exec(text) ?? []
  const ms = UNIT_MS[unit]
  if (ms === undefined) throw new UsageError('--since must be an age such as 30m, 2h or 7d')
  return Number(count) * ms
}

function countOf(text: string | undefined): number {
  if (text === undefined) return Infinity
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError('--count must be a whole number of at least 1')
  return Number(text)
}
