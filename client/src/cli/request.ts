import { parseArgs } from 'node:util'
import { text } from 'node:stream/consumers'
import { ConnectionError } from '../errors.ts'
import { causeOf, rootOf, signedHeaders } from '../transport.ts'
import { printable, printableJson } from './printable.ts'
import { readNamed, readSettings } from './settings.ts'
import { UsageError } from './usage-error.ts'

const DEADLINE_MS = 30_000

/** Sends one signed call and prints the answer, whatever it is. Returns 1 if the service refuses it. */
export async function request(words: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...words],
    allowPositionals: true,
    options: { data: { type: 'string' }, 'env-file': { type: 'string' } },
  })
  const [method, path] = positionals
  if (method === undefined || path === undefined || positionals.length > 2)
    throw new UsageError('write: paygate request METHOD PATH')
  const settings = readSettings(values['env-file'])
  const call = { method: methodOf(method), target: targetOf(path), body: await bodyOf(values.data) }
  if (call.method === 'GET' && call.body !== '') throw new UsageError('--data: a GET has no body')
  const answer = await fetchSigned(settings, call)
  process.stderr.write(`${call.method} ${call.target}: ${answer.status}\n`)
  process.stdout.write(`${readable(answer.text)}\n`)
  return answer.ok ? 0 : 1
}

interface RawCall {
  readonly method: string
  readonly target: string
  readonly body: string
}

interface RawAnswer {
  readonly status: number
  readonly ok: boolean
  readonly text: string
}

async function fetchSigned(
  settings: ReturnType<typeof readSettings>,
  { method, target, body }: RawCall,
): Promise<RawAnswer> {
  const url = rootOf(settings.baseUrl) + target
  const init = {
    method,
    headers: await signedHeaders(settings, method, target, body),
    redirect: 'manual',
    signal: AbortSignal.timeout(DEADLINE_MS),
    ...(body === '' ? {} : { body }),
  } as const
  try {
    const answer = await fetch(url, init)
    return { status: answer.status, ok: answer.ok, text: await answer.text() }
  } catch (error) {
    throw new ConnectionError(`${url} cannot be reached, or did not answer in full${causeOf(error)}`, { cause: error })
  }
}

function methodOf(text: string): string {
  const method = text.toUpperCase()
  if (!/^(GET|POST|PUT|PATCH)$/.test(method)) throw new UsageError('METHOD must be GET, POST, PUT or PATCH')
  return method
}

/** `/plans` is short for `/api/v1/plans`. */
function targetOf(path: string): string {
  if (!path.startsWith('/')) throw new UsageError('PATH must begin with /')
  // As the request will carry it: a blank or an accent is encoded.
  const { pathname, search } = new URL(path.startsWith('/api/') ? path : `/api/v1${path}`, 'http://service')
  return pathname + search
}

async function bodyOf(data: string | undefined): Promise<string> {
  if (data === '-') return text(process.stdin)
  return data?.startsWith('@') ? readNamed(data.slice(1), '--data') : (data ?? '')
}

/** Indented, if it is JSON. */
function readable(answer: string): string {
  try {
    return printableJson(JSON.parse(answer), 2)
  } catch {
    return answer.split('\n').map(printable).join('\n')
  }
}
