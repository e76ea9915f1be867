import { readFileSync } from 'node:fs'
import { PaygateError } from '../errors.ts'
import { listen } from './listen.ts'
import { request } from './request.ts'
import { UsageError } from './usage-error.ts'

const USAGE = `paygate: tools for developers who use a Paygate

  paygate listen [--forward-to URL] [--since 2h] [--events TYPES] [--count N]
      shows the app's events as they happen, and posts each to URL,
      signed as real deliveries are
      --since 30m, 2h, 7d   begins with the events of that time
      --events TYPES        only these: subscription.*,transaction.completed
      --count N             ends after N events
      --json                prints each event as a line of JSON

  paygate request METHOD PATH [--data JSON]
      signs a call, sends it, and prints the answer:
      paygate request GET '/plans?status=active'
      --data @FILE          takes the body from a file; - reads standard input

Both read PAYGATE_URL, PAYGATE_API_KEY and PAYGATE_API_SECRET from the
environment, or from the file that --env-file FILE names. --forward-to needs
PAYGATE_WEBHOOK_SECRET, too.
`

/** Runs the command line and explains what fails. Returns the exit code: 2 for a wrong command line, 1 for what fails. */
export async function run(words: readonly string[]): Promise<number> {
  return runCommand(words).catch(explain)
}

async function runCommand([command, ...words]: readonly string[]): Promise<number> {
  if (command === 'listen') return listen(words)
  if (command === 'request') return request(words)
  if (command === '--version') return print(`${ownVersion()}\n`)
  if (command === '--help' || command === 'help' || command === undefined) return print(USAGE)
  throw new UsageError(`there is no command ${command}`)
}

function print(text: string): number {
  process.stdout.write(text)
  return 0
}

function ownVersion(): string {
  const file = new URL('../../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}

function explain(error: unknown): number {
  const isUsage = error instanceof UsageError || isOfParseArgs(error)
  if (!isUsage && !(error instanceof PaygateError) && !(error instanceof TypeError)) throw error
  process.stderr.write(`error: ${error.message}\n${isUsage ? 'paygate --help shows what there is\n' : ''}`)
  return isUsage ? 2 : 1
}

function isOfParseArgs(error: unknown): error is TypeError {
  return error instanceof TypeError && String((error as NodeJS.ErrnoException).code).startsWith('ERR_PARSE_ARGS')
}
