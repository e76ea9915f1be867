import type { Json, Operation } from './openapi.ts'

/** A call with example values: what a sample sends. */
interface ExampleCall {
  readonly id: string
  readonly method: string
  /** With example values in place of its parameters. */
  readonly path: string
  /** The values of those parameters, in order. */
  readonly values: readonly (string | number)[]
  /** Undefined for a call without a body. */
  readonly body: unknown
}

/** A language of the samples. `setup` is what every sample needs in front of it. */
export interface SampleLanguage {
  readonly name: string
  /** For the fence of its code. */
  readonly fence: string
  readonly setup: string
  readonly sample: (call: ExampleCall) => string
}

/** The methods of the client that are not named after the call. */
const CLIENT_METHODS: Readonly<Record<string, string>> = {
  addPrice: 'prices.create',
  switchPlan: 'subscriptions.switchPlan',
  attachCustomer: 'subscriptions.attachCustomer',
  getTestClock: 'testClock.get',
  advanceTestClock: 'testClock.advance',
}

export const SAMPLE_LANGUAGES: readonly SampleLanguage[] = [
  {
    name: 'Shell',
    fence: 'sh',
    setup: `# call <method> <path> [<body>]
call() {
  local now signature
  now=$(date +%s)
  signature=$(printf '%s.%s.%s.%s' "$now" "$1" "$2" "\${3:-}" | openssl dgst -sha256 -mac HMAC -macopt "key:$PAYGATE_API_SECRET" -r | cut -d' ' -f1)
  set -- "$1" "$2" \${3:+--header 'Content-Type: application/json' --data-binary "$3"}
  curl --fail-with-body --silent --show-error --request "$1" "$PAYGATE_URL$2" "\${@:3}" \\
    --header "X-App-Key: $PAYGATE_API_KEY" --header "X-Timestamp: $now" --header "X-Signature: $signature"
}`,
    sample: ({ method, path, body }) =>
      ['call', method, path, ...(body === undefined ? [] : [inQuotes(JSON.stringify(body, null, 2), "'\\''")])].join(
        ' ',
      ),
  },
  {
    name: 'TypeScript',
    fence: 'ts',
    setup: `import { Paygate } from 'paygate-client'

const paygate = new Paygate({
  baseUrl: process.env.PAYGATE_URL!,
  apiKey: process.env.PAYGATE_API_KEY!,
  apiSecret: process.env.PAYGATE_API_SECRET!,
})`,
    sample: ({ id, values, body }) => {
      const given = [...values, ...(body === undefined ? [] : [body])]
      return `await paygate.${clientMethod(id)}(${given.map((value) => literal(value, TYPESCRIPT)).join(', ')})`
    },
  },
  {
    name: 'Python',
    fence: 'python',
    setup: `import hashlib, hmac, json, os, time, urllib.request


def call(method, path, body=None):
    raw = b"" if body is None else json.dumps(body).encode()
    now = str(int(time.time()))
    secret = os.environ["PAYGATE_API_SECRET"].encode()
    signature = hmac.new(secret, f"{now}.{method}.{path}.".encode() + raw, hashlib.sha256).hexdigest()
    headers = {"X-App-Key": os.environ["PAYGATE_API_KEY"], "X-Timestamp": now, "X-Signature": signature}
    if body is not None:
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(os.environ["PAYGATE_URL"] + path, raw or None, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)["data"]`,
    sample: (call) => functionCall(call, PYTHON),
  },
  {
    name: 'PHP',
    fence: 'php',
    setup: `<?php
function call(string $method, string $path, ?array $body = null): array
{
    $raw = $body === null ? '' : json_encode($body, JSON_THROW_ON_ERROR);
    $now = time();
    $signature = hash_hmac('sha256', "$now.$method.$path.$raw", getenv('PAYGATE_API_SECRET'));
    $headers = ['X-App-Key: ' . getenv('PAYGATE_API_KEY'), "X-Timestamp: $now", "X-Signature: $signature"];
    if ($body !== null) {
        $headers[] = 'Content-Type: application/json';
    }
    $options = ['method' => $method, 'header' => $headers, 'content' => $raw, 'timeout' => 30];
    $answer = file_get_contents(getenv('PAYGATE_URL') . $path, false, stream_context_create(['http' => $options]));
    if ($answer === false) {
        throw new RuntimeException("$method $path was refused");
    }
    return json_decode($answer, true, 64, JSON_THROW_ON_ERROR)['data'];
}`,
    sample: (call) => `${functionCall(call, PHP)};`,
  },
]

/** The call with the examples of its parameters and, where it has a body, of that. */
export function exampleOf(call: string, { operationId, parameters, requestBody }: Operation): ExampleCall {
  const [method = '', path = ''] = call.split(' ')
  const inPath = parameters.filter((parameter) => parameter['in'] === 'path')
  const values = inPath.map(({ schema }) => (schema as { examples?: (string | number)[] }).examples?.[0] ?? '')
  let filled = path
  for (const value of values) filled = filled.replace(/\{\w+\}/, String(value))
  return { id: operationId, method, path: filled, values, body: requestBody && exampleBody(requestBody) }
}

function exampleBody(requestBody: Json): unknown {
  const { 'application/json': content } = requestBody['content'] as Record<string, { examples: Json }>
  const [first] = Object.values(content?.examples ?? {}) as { value: unknown }[]
  return first?.value
}

/** `createPlan` is `plans.create`. */
function clientMethod(id: string): string {
  const [, verb = '', noun = ''] = /^([a-z]+)([A-Z]\w+)$/.exec(id) ?? []
  const plural = `${noun.slice(0, 1).toLowerCase()}${noun.slice(1)}${noun.endsWith('s') ? '' : 's'}`
  return CLIENT_METHODS[id] ?? `${plural}.${verb}`
}

function functionCall({ method, path, body }: ExampleCall, notation: Notation): string {
  const given = [method, path, ...(body === undefined ? [] : [body])]
  return `call(${given.map((value) => literal(value, notation)).join(', ')})`
}

/** How a language writes the values of JSON. */
interface Notation {
  readonly object: readonly [open: string, close: string]
  readonly key: (name: string) => string
  readonly text: (value: string) => string
  readonly words: Readonly<Record<'true' | 'false' | 'null', string>>
}

const TYPESCRIPT: Notation = {
  object: ['{ ', ' }'],
  key: (name) => `${/^[a-z_]\w*$/i.test(name) ? name : inQuotes(name, "\\'")}: `,
  text: (value) => inQuotes(value, "\\'"),
  words: { true: 'true', false: 'false', null: 'null' },
}
const PYTHON: Notation = {
  object: ['{', '}'],
  key: (name) => `${JSON.stringify(name)}: `,
  text: (value) => JSON.stringify(value),
  words: { true: 'True', false: 'False', null: 'None' },
}
const PHP: Notation = {
  object: ['[', ']'],
  key: (name) => `${inQuotes(name, "\\'")} => `,
  text: (value) => inQuotes(value, "\\'"),
  words: { true: 'true', false: 'false', null: 'null' },
}

const WIDEST = 80

/** The value on one line if it fits, else with a line for each of its parts. */
function literal(value: unknown, notation: Notation, indent = ''): string {
  const { object, key, text, words } = notation
  if (typeof value === 'string') return text(value)
  if (typeof value !== 'object' || value === null) {
    const word = String(value)
    return word in words ? words[word as keyof typeof words] : word
  }
  const inner = `${indent}  `
  const parts = Array.isArray(value)
    ? value.map((item) => literal(item, notation, inner))
    : Object.entries(value).map(([name, field]) => `${key(name)}${literal(field, notation, inner)}`)
  const [open, close] = Array.isArray(value) ? (['[', ']'] as const) : object
  const line = `${open}${parts.join(', ')}${close}`
  if (line.length <= WIDEST && !line.includes('\n')) return line
  return `${open.trim()}\n${parts.map((part) => `${inner}${part},\n`).join('')}${indent}${close.trim()}`
}

/** The texts of the examples have no backslash. */
function inQuotes(text: string, quote: string): string {
  return `'${text.replaceAll("'", quote)}'`
}
